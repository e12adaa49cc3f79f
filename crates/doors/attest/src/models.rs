//! Asking models: what assertions need, from the memory of earlier answers or from a provider.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use proctor_assert::{Answers, Judgement, Prompts, Sample, Similarity, Verdict};
use proctor_core::digest::Digest;
use proctor_providers::local::LocalModel;
use proctor_providers::store::{JudgedAnswer, Store};
use proctor_providers::vendor::{ChatReply, ChatRequest, Client, Message, ProviderError, Role, cost_usd};

use super::settings::{EmbeddingSettings, JudgeSettings, Settings};

/// How long a judge's answer may be, in tokens; models that think first spend some of them on that.
const ANSWER_TOKENS: u32 = 1024;

/// How freely a judge speaks when it is asked the same several times.
const SAMPLING: f64 = 0.3;

/// The models that are configured.
pub struct Models {
    judge: Option<Judge>,
    embedder: Option<Embedder>,
}

/// The model that judges.
pub struct Judge {
    client: Client,
    settings: JudgeSettings,
    /// Dollars spent and promised.
    spent: Mutex<f64>,
}

/// The model that turns texts into vectors.
enum Embedder {
    Endpoint {
        client: Client,
        model: String,
    },
    /// Read when it is needed for the first time: most sessions never do.
    Local {
        folder: PathBuf,
        model: Box<OnceLock<Result<LocalModel, String>>>,
    },
}

impl Models {
    /// Makes the clients; nothing is contacted.
    pub fn new(settings: &Settings) -> Result<Models, String> {
        let judge = settings.judge.clone().map(|judge| {
            let client = Client::new(judge.endpoint.clone(), judge.limits)
                .map_err(|error| format!("the judge cannot be used (ATTEST_JUDGE_BASE_URL): {error}"))?;
            Ok::<_, String>(Judge { client, settings: judge, spent: Mutex::new(0.0) })
        });
        let embedder = settings.embedding.clone().map(|embedding| match embedding {
            EmbeddingSettings::Local(folder) => Ok(Embedder::Local { folder, model: Box::default() }),
            EmbeddingSettings::Endpoint { endpoint, model, limits } => Client::new(endpoint, limits)
                .map(|client| Embedder::Endpoint { client, model })
                .map_err(|error| {
                    format!("the embedding model cannot be used (ATTEST_EMBEDDING_BASE_URL): {error}")
                }),
        });
        Ok(Models { judge: judge.transpose()?, embedder: embedder.transpose()? })
    }

    /// Whether there is a judge.
    pub fn judge(&self) -> Option<&Judge> {
        self.judge.as_ref()
    }

    /// Whether texts can become vectors.
    pub fn embeds(&self) -> bool {
        self.embedder.is_some()
    }

    /// Decides a similarity.
    pub fn similarity(
        &self,
        asked: &Similarity,
        head: &proctor_assert::Head<'_>,
        store: Option<&Store>,
        until: Instant,
    ) -> Verdict {
        let Some(embedder) = &self.embedder else {
            return Verdict::error("no embedding provider is configured").suggest(
                "set ATTEST_EMBEDDING_MODEL_DIR, ATTEST_EMBEDDING_BASE_URL or ATTEST_OPENAI_API_KEY",
            );
        };
        let texts = match asked.texts(head) {
            Ok(texts) => texts,
            Err(verdict) => return verdict,
        };
        match embedder.vectors(&asked.model, &texts, store, until) {
            Ok(vectors) => match vectors.as_slice() {
                [said, reference] => asked.verdict(said, reference),
                _ => Verdict::error("the embedding provider gave another number of vectors than texts"),
            },
            Err(problem) => Verdict::error(format!("the embedding provider failed: {problem}")),
        }
    }

    /// Decides a judgement.
    pub fn judgement(
        &self,
        asked: &Judgement,
        head: &proctor_assert::Head<'_>,
        fence: &str,
        store: Option<&Store>,
        until: Instant,
    ) -> Verdict {
        let Some(judge) = &self.judge else {
            return Verdict::error("no judge is configured").suggest(
                "set ATTEST_OPENAI_API_KEY, ATTEST_ANTHROPIC_API_KEY, ATTEST_GEMINI_API_KEY, ATTEST_OLLAMA_BASE_URL or ATTEST_JUDGE_BASE_URL",
            );
        };
        match asked.prompts(head, fence) {
            Ok(prompts) => asked.verdict(&prompts, &judge.ask(asked, &prompts, store, until)),
            Err(verdict) => verdict,
        }
    }
}

impl Embedder {
    fn vectors(
        &self,
        wanted: &str,
        texts: &[String],
        store: Option<&Store>,
        until: Instant,
    ) -> Result<Vec<Vec<f32>>, String> {
        let name = match self {
            Embedder::Endpoint { model, .. } => {
                if wanted.is_empty() {
                    model.clone()
                } else {
                    wanted.to_owned()
                }
            }
            Embedder::Local { .. } => self.local()?.name().to_owned(),
        };
        let kept_as = match self {
            Embedder::Endpoint { client, .. } => kept_as(client, &name),
            Embedder::Local { .. } => name.clone(),
        };
        let hashes: Vec<String> = texts.iter().map(|text| Digest::of(text.as_bytes()).to_string()).collect();
        let mut vectors: Vec<Option<Vec<f32>>> =
            hashes.iter().map(|hash| store.and_then(|store| store.vector(hash, &kept_as))).collect();
        let missing: Vec<usize> =
            (0..texts.len()).filter(|index| vectors.get(*index).is_some_and(Option::is_none)).collect();
        if !missing.is_empty() {
            let wanted: Vec<&str> =
                missing.iter().filter_map(|index| texts.get(*index).map(String::as_str)).collect();
            let made = match self {
                Embedder::Local { .. } => {
                    let model = self.local()?;
                    wanted.iter().map(|text| model.embed(text)).collect()
                }
                Embedder::Endpoint { client, .. } => {
                    client.embed(&name, &wanted, left(until)).map_err(|error| error.to_string())?.vectors
                }
            };
            for (index, vector) in missing.into_iter().zip(made) {
                if let (Some(store), Some(hash)) = (store, hashes.get(index)) {
                    store.keep_vector(hash, &kept_as, vector.clone());
                }
                if let Some(place) = vectors.get_mut(index) {
                    *place = Some(vector);
                }
            }
        }
        vectors.into_iter().map(|vector| vector.ok_or_else(|| "a vector is missing".to_owned())).collect()
    }

    fn local(&self) -> Result<&LocalModel, String> {
        match self {
            Embedder::Endpoint { .. } => Err("the model is not on this machine".to_owned()),
            Embedder::Local { folder, model } => model
                .get_or_init(|| LocalModel::open(folder).map_err(|error| error.to_string()))
                .as_ref()
                .map_err(Clone::clone),
        }
    }
}

/// A question to the judge: its name in the cache, which sample of it, and the request.
struct Question {
    key: String,
    sample: u32,
    request: ChatRequest,
}

impl Judge {
    fn ask(
        &self,
        asked: &Judgement,
        prompts: &Prompts,
        store: Option<&Store>,
        until: Instant,
    ) -> Answers<String> {
        let model = if asked.model.is_empty() { self.settings.model.clone() } else { asked.model.clone() };
        let samples = asked.repeat.unwrap_or(self.settings.samples);
        let question = |key: &str, user: &str, sample: u32, temperature: f64| Question {
            key: key.to_owned(),
            sample,
            request: ChatRequest {
                model: model.clone(),
                system: prompts.system.clone(),
                messages: vec![Message { role: Role::User, content: user.to_owned() }],
                temperature,
                max_tokens: ANSWER_TOKENS,
            },
        };
        // Sample 0 is the one that is asked for alone: several are taken at another temperature and never mixed with it.
        let mut questions: Vec<Question> = match samples {
            1 => vec![question(&prompts.key, &prompts.user, 0, 0.0)],
            several => {
                (1..=several).map(|sample| question(&prompts.key, &prompts.user, sample, SAMPLING)).collect()
            }
        };
        questions.extend(
            prompts.probes.iter().zip(&prompts.probe_keys).map(|(user, key)| question(key, user, 0, 0.0)),
        );
        let (mut answers, cost) = self.answers(&model, &questions, store, until);
        let probes = answers.split_off(answers.len().saturating_sub(prompts.probes.len()));
        Answers { model, samples: answers, probes, cost_usd: cost }
    }

    /// The answer to each question, and what they cost; `None` if a price is not known.
    fn answers(
        &self,
        model: &str,
        questions: &[Question],
        store: Option<&Store>,
        until: Instant,
    ) -> (Vec<Result<Sample, String>>, Option<f64>) {
        let kept_as = kept_as(&self.client, model);
        let mut answers: Vec<Option<Result<Sample, String>>> = questions
            .iter()
            .map(|question| {
                let kept = store?.judged(&question.key, &kept_as, question.sample)?;
                Some(Ok(Sample { score: kept.score, explanation: kept.explanation }))
            })
            .collect();
        let asked: Vec<usize> =
            (0..questions.len()).filter(|at| answers.get(*at).is_some_and(Option::is_none)).collect();
        let requests: Vec<ChatRequest> = asked
            .iter()
            .filter_map(|at| questions.get(*at))
            .map(|question| question.request.clone())
            .collect();
        let mut cost = Some(0.0);
        if !requests.is_empty() {
            match self.reserve(model, &requests) {
                Err(problem) => {
                    for at in &asked {
                        if let Some(place) = answers.get_mut(*at) {
                            *place = Some(Err(problem.clone()));
                        }
                    }
                }
                Ok(promised) => {
                    let replies = self.client.chat_all(&requests, left(until));
                    let spent = replies
                        .iter()
                        .zip(&requests)
                        .map(|(reply, request)| self.cost(model, reply, request))
                        .try_fold(0.0, |sum, one| Some(sum + one?));
                    self.settle(promised, spent.unwrap_or(promised));
                    cost = spent;
                    for (at, reply) in asked.iter().zip(replies) {
                        let (Some(place), Some(question)) = (answers.get_mut(*at), questions.get(*at)) else {
                            continue;
                        };
                        *place = Some(read_reply(reply, question, &kept_as, store));
                    }
                }
            }
        }
        let answers =
            answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err("it was not asked".to_owned())));
        (answers.collect(), cost)
    }

    /// What a call cost. One that was answered, but with nothing that can be used, is billed all the same; how much is not known, so
    /// the most that it can have been.
    fn cost(
        &self,
        model: &str,
        reply: &Result<ChatReply, ProviderError>,
        request: &ChatRequest,
    ) -> Option<f64> {
        match reply {
            Ok(reply) => self.price(model, reply.input_tokens?, reply.output_tokens?),
            Err(
                ProviderError::TimedOut
                | ProviderError::Unreadable(_)
                | ProviderError::TooLong { .. }
                | ProviderError::Refused { status: 200, .. },
            ) => self.most(model, request),
            Err(_) => Some(0.0),
        }
    }

    /// The most that a call can cost: no tokenizer makes more tokens than there are bytes.
    fn most(&self, model: &str, request: &ChatRequest) -> Option<f64> {
        let said = request.messages.iter().map(|message| message.content.len()).sum::<usize>();
        self.price(model, (request.system.len() + said) as u64, u64::from(request.max_tokens))
    }

    fn price(&self, model: &str, read: u64, written: u64) -> Option<f64> {
        match self.settings.price {
            Some((input, output)) => Some((read as f64 * input + written as f64 * output) / 1e6),
            None => cost_usd(model, read, written),
        }
    }

    /// Sets aside the most that these requests can cost. Without a budget nothing is refused.
    fn reserve(&self, model: &str, requests: &[ChatRequest]) -> Result<f64, String> {
        let Some(budget) = self.settings.budget_usd else { return Ok(0.0) };
        let most = requests
            .iter()
            .map(|request| self.most(model, request))
            .try_fold(0.0, |sum, one| Some(sum + one?));
        let most = most.ok_or_else(|| {
            format!("the price of `{model}` is not known, so ATTEST_BUDGET_USD cannot be kept: set ATTEST_JUDGE_PRICE_IN and ATTEST_JUDGE_PRICE_OUT")
        })?;
        let mut spent = self.spent.lock().map_err(|_| "the budget cannot be read".to_owned())?;
        if *spent + most > budget {
            return Err(format!(
                "the budget of ${budget} is used up: ${:.4} are spent or promised, and this may cost ${most:.4}",
                *spent
            ));
        }
        *spent += most;
        Ok(most)
    }

    fn settle(&self, promised: f64, spent: f64) {
        if self.settings.budget_usd.is_some()
            && let Ok(mut total) = self.spent.lock()
        {
            *total += spent - promised;
        }
    }

    /// What a simulated user says next.
    pub fn speak(&self, mut request: ChatRequest, within: Duration) -> Result<String, SpeakError> {
        request.model.clone_from(&self.settings.model);
        let promised =
            self.reserve(&request.model, std::slice::from_ref(&request)).map_err(SpeakError::Budget)?;
        let reply = self.client.chat(&request, within);
        let spent = self.cost(&request.model, &reply, &request);
        self.settle(promised, spent.unwrap_or(promised));
        reply.map(|reply| reply.text).map_err(SpeakError::Provider)
    }
}

/// Why a simulated user says nothing.
#[derive(Debug)]
pub enum SpeakError {
    /// There is no money for it.
    Budget(String),
    /// The provider failed.
    Provider(ProviderError),
}

fn read_reply(
    reply: Result<ChatReply, ProviderError>,
    question: &Question,
    kept_as: &str,
    store: Option<&Store>,
) -> Result<Sample, String> {
    let reply = reply.map_err(|error| error.to_string())?;
    let sample =
        Sample::parse(&reply.text).map_err(|problem| format!("its answer cannot be read: {problem}"))?;
    if let Some(store) = store {
        let kept = JudgedAnswer {
            score: sample.score,
            explanation: sample.explanation.clone(),
            input_tokens: reply.input_tokens.unwrap_or_default(),
            output_tokens: reply.output_tokens.unwrap_or_default(),
        };
        store.keep_judged(&question.key, kept_as, question.sample, kept);
    }
    Ok(sample)
}

/// What answers of a model are remembered under: the same name at another address is another model.
fn kept_as(client: &Client, model: &str) -> String {
    let endpoint = client.endpoint();
    let url = endpoint.base_url.trim_end_matches('/');
    if url == endpoint.vendor.usual_base_url() { model.to_owned() } else { format!("{model} at {url}") }
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}
