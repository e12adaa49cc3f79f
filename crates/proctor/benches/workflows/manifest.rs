//! Manifests of a given number of tasks.

/// A manifest of version 0.2 with this many tasks: a root, and tasks that follow one of the tasks before them.
pub fn manifest(tasks: usize) -> String {
    let list: Vec<String> = (0..tasks).map(task).collect();
    format!(
        r#"{{"version":"0.2","identity_profiles":[{{"id":"reporter","provider":"env-bearer","subject":{{"kind":"service","principal":"reporter@example.com"}},"auth":{{"mode":"service","provider_config":{{"token_env":"REPORT_TOKEN"}}}},"trust":{{"level":"supervised"}}}}],"workflows":[{{"id":"daily","name":"Daily report","identity":{{"ref":"reporter"}},"contract":{{"sandbox":"permissive","network":"none"}},"tasks":[{}]}}]}}"#,
        list.join(",")
    )
}

fn task(index: usize) -> String {
    let start = match index.checked_sub(1) {
        None => r#""schedule":{"cron":"0 6 * * 1-5","tz":"Europe/Berlin"}"#.to_owned(),
        Some(before) => format!(
            r#""trigger":{{"parent":"task-{}","on":"success","delay_s":{},"condition":"contains:orders"}}"#,
            before / 8,
            index % 60
        ),
    };
    format!(
        r#"{{"id":"task-{index}","name":"Task {index}","target":{{"session_target":"shell"}},"shell":{{"program":"/usr/bin/collect","args":["--part","{index}","--format","json"],"cwd":"/srv/reports"}},{start},"output":{{"preview_bytes":2000,"offload":"auto"}},"runtime":{{"timeout_ms":60000}},"reliability":{{"guarantee":"at-least-once","max_retries":2}}}}"#
    )
}
