//! Model calls of assertions: judge answers and embeddings, from the cache or from a provider.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use proctor_assert::{AnswerError, Answers, Judgement, Prompts, Sample, Similarity, Verdict};
use proctor_core::digest::Digest;
use proctor_providers::local::{LocalModel, LocalModelError};
use proctor_providers::store::{JudgedAnswer, Store};
use proctor_providers::vendor::{ChatReply, ChatRequest, Client, Message, ProviderError, Role, cost_usd};

use super::settings::{EmbeddingSettings, JudgeSettings, Settings, SettingsError};

/// Token limit of a judge's answer, including reasoning tokens.
const ANSWER_TOKENS: u32 = 1024;

/// Temperature of repeated samples.
const SAMPLING_TEMPERATURE: f64 = 0.3;

/// Configured judge and embedding model.
pub struct Models {
    judge: Result<Option<Judge>, ModelsError>,
    embedder: Result<Option<Embedder>, ModelsError>,
}

/// Client of the judge model, with its budget.
pub struct Judge {
    client: Client,
    settings: JudgeSettings,
    /// Dollars spent and reserved.
    spent: Mutex<f64>,
}

/// Embedding model.
enum Embedder {
    Endpoint {
        client: Client,
        model: String,
    },
    /// Loaded at the first use, because most sessions never need it.
    Local {
        folder: PathBuf,
        model: Box<OnceLock<Result<LocalModel, LocalModelError>>>,
    },
}

impl Models {
    /// Creates the clients, without connecting. One that cannot be used does not stop the other, nor assertions that need no model.
    pub fn new(settings: &Settings) -> Models {
        Models {
            judge: open_judge(&settings.judge).transpose(),
            embedder: open_embedder(&settings.embedding).transpose(),
        }
    }

    /// The judge, if there is one that can be used.
    pub fn judge(&self) -> Option<&Judge> {
        self.judge.as_ref().ok()?.as_ref()
    }

    /// Whether there is an embedding model that can be used.
    pub fn embeds(&self) -> bool {
        matches!(self.embedder, Ok(Some(_)))
    }

    /// The models that are configured and cannot be used.
    pub fn problems(&self) -> impl Iterator<Item = &ModelsError> {
        self.judge.as_ref().err().into_iter().chain(self.embedder.as_ref().err())
    }

    /// Evaluates a similarity assertion.
    pub fn similarity(
        &self,
        asked: &Similarity,
        head: &proctor_assert::Head<'_>,
        store: Option<&Store>,
        until: Instant,
    ) -> Verdict {
        let embedder = match &self.embedder {
            Ok(Some(embedder)) => embedder,
            Ok(None) => {
                return Verdict::error("no embedding provider is configured").suggest(
                    "set ATTEST_EMBEDDING_MODEL_DIR, ATTEST_EMBEDDING_BASE_URL or ATTEST_OPENAI_API_KEY",
                );
            }
            Err(problem) => return Verdict::error(problem.to_string()).suggest("correct this setting"),
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

    /// Evaluates a judge assertion.
    pub fn judgement(
        &self,
        asked: &Judgement,
        head: &proctor_assert::Head<'_>,
        fence: &str,
        store: Option<&Store>,
        until: Instant,
    ) -> Verdict {
        let judge = match &self.judge {
            Ok(Some(judge)) => judge,
            Ok(None) => {
                return Verdict::error("no judge is configured").suggest(
                    "set ATTEST_OPENAI_API_KEY, ATTEST_ANTHROPIC_API_KEY, ATTEST_GEMINI_API_KEY, ATTEST_OLLAMA_BASE_URL or ATTEST_JUDGE_BASE_URL",
                );
            }
            Err(problem) => return Verdict::error(problem.to_string()).suggest("correct this setting"),
        };
        match asked.prompts(head, fence) {
            Ok(prompts) => {
                let model =
                    if asked.model.is_empty() { judge.settings.model.clone() } else { asked.model.clone() };
                let samples = asked.repeat.unwrap_or(judge.settings.samples);
                asked.verdict(&prompts, &judge.ask(model, samples, &prompts, store, until))
            }
            Err(verdict) => verdict,
        }
    }
}

fn open_judge(settings: &Result<Option<JudgeSettings>, SettingsError>) -> Option<Result<Judge, ModelsError>> {
    let settings = match settings {
        Ok(settings) => settings.clone()?,
        Err(error) => return Some(Err(ModelsError::JudgeSettings(error.clone()))),
    };
    let client = Client::new(settings.endpoint.clone(), settings.limits).map_err(ModelsError::Judge);
    Some(client.map(|client| Judge { client, settings, spent: Mutex::new(0.0) }))
}

fn open_embedder(
    settings: &Result<Option<EmbeddingSettings>, SettingsError>,
) -> Option<Result<Embedder, ModelsError>> {
    let settings = match settings {
        Ok(settings) => settings.clone()?,
        Err(error) => return Some(Err(ModelsError::EmbeddingSettings(error.clone()))),
    };
    Some(match settings {
        EmbeddingSettings::Local(folder) => LocalModel::find(&folder)
            .map(|()| Embedder::Local { folder, model: Box::default() })
            .map_err(ModelsError::LocalEmbedding),
        EmbeddingSettings::Endpoint { endpoint, model, limits } => Client::new(endpoint, limits)
            .map(|client| Embedder::Endpoint { client, model })
            .map_err(ModelsError::Embedding),
    })
}

impl Embedder {
    fn vectors(
        &self,
        wanted: &str,
        texts: &[String],
        store: Option<&Store>,
        until: Instant,
    ) -> Result<Vec<Vec<f32>>, EmbedError<'_>> {
        let name = match self {
            Embedder::Endpoint { model, .. } => {
                if wanted.is_empty() {
                    model.clone()
                } else {
                    wanted.to_owned()
                }
            }
            Embedder::Local { folder, model } => open_local(folder, model)?.name().to_owned(),
        };
        let cache_name = match self {
            Embedder::Endpoint { client, .. } => cache_name(client, &name),
            Embedder::Local { .. } => name.clone(),
        };
        let hashes: Vec<String> = texts.iter().map(|text| Digest::of(text.as_bytes()).to_string()).collect();
        let mut vectors: Vec<Option<Vec<f32>>> =
            hashes.iter().map(|hash| store.and_then(|store| store.vector(hash, &cache_name))).collect();
        let missing: Vec<usize> =
            (0..texts.len()).filter(|index| vectors.get(*index).is_some_and(Option::is_none)).collect();
        if !missing.is_empty() {
            let wanted: Vec<&str> =
                missing.iter().filter_map(|index| texts.get(*index).map(String::as_str)).collect();
            let made = match self {
                Embedder::Local { folder, model } => {
                    let model = open_local(folder, model)?;
                    wanted.iter().map(|text| model.embed(text)).collect()
                }
                Embedder::Endpoint { client, .. } => {
                    client.embed(&name, &wanted, left(until)).map_err(EmbedError::Provider)?.vectors
                }
            };
            for (index, vector) in missing.into_iter().zip(made) {
                if let (Some(store), Some(hash)) = (store, hashes.get(index)) {
                    store.keep_vector(hash, &cache_name, vector.clone());
                }
                if let Some(place) = vectors.get_mut(index) {
                    *place = Some(vector);
                }
            }
        }
        vectors.into_iter().map(|vector| vector.ok_or(EmbedError::Missing)).collect()
    }
}

fn open_local<'a>(
    folder: &Path,
    model: &'a OnceLock<Result<LocalModel, LocalModelError>>,
) -> Result<&'a LocalModel, EmbedError<'a>> {
    model.get_or_init(|| LocalModel::open(folder)).as_ref().map_err(EmbedError::Local)
}

/// Error in the configured models.
#[derive(Debug, thiserror::Error)]
pub enum ModelsError {
    /// The judge's settings contradict each other, or lack something.
    #[error("the judge cannot be used: {0}")]
    JudgeSettings(#[source] SettingsError),
    /// The embedding model's settings contradict each other, or lack something.
    #[error("the embedding model cannot be used: {0}")]
    EmbeddingSettings(#[source] SettingsError),
    /// The folder of the local model lacks a file, or this build has no local models.
    #[error("the embedding model cannot be used: {0}")]
    LocalEmbedding(#[source] LocalModelError),
    /// The judge's endpoint is not valid.
    #[error("the judge cannot be used (ATTEST_JUDGE_BASE_URL): {0}")]
    Judge(#[source] ProviderError),
    /// The embedding model's endpoint is not valid.
    #[error("the embedding model cannot be used (ATTEST_EMBEDDING_BASE_URL): {0}")]
    Embedding(#[source] ProviderError),
}

/// Error of embedding texts. A local model's error is borrowed, because it is kept for all later calls.
#[derive(Debug, thiserror::Error)]
enum EmbedError<'a> {
    #[error("{0}")]
    Local(&'a LocalModelError),
    #[error("{0}")]
    Provider(ProviderError),
    #[error("a vector is missing")]
    Missing,
}

/// Error of a call that the budget refuses.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BudgetError {
    /// The cost of a call cannot be bounded.
    #[error(
        "the price of `{model}` is not known, so ATTEST_BUDGET_USD cannot be kept: set ATTEST_JUDGE_PRICE_IN and ATTEST_JUDGE_PRICE_OUT"
    )]
    UnknownPrice {
        /// The model.
        model: String,
    },
    /// A panic left the account of the budget unusable.
    #[error("the budget cannot be read")]
    Unreadable,
    /// The call could exceed the budget.
    #[error(
        "the budget of ${budget} is used up: ${spent:.4} are spent or promised, and this may cost ${most:.4}"
    )]
    UsedUp {
        /// The budget, in dollars.
        budget: f64,
        /// Dollars spent and reserved.
        spent: f64,
        /// Upper bound of the refused calls, in dollars.
        most: f64,
    },
}

/// Error of asking the judge.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// The budget refuses the call.
    #[error("{0}")]
    Budget(BudgetError),
    /// The provider did not answer.
    #[error("{0}")]
    Provider(#[source] ProviderError),
    /// The answer is not one.
    #[error("its answer cannot be read: {0}")]
    Answer(#[source] AnswerError),
    /// The time was over before the judge was asked.
    #[error("it was not asked")]
    NotAsked,
}

/// A question to the judge: cache key, sample number and request.
struct Question {
    key: String,
    sample: u32,
    request: ChatRequest,
}

impl Judge {
    /// Asks the judge so many times, without the cache.
    pub fn samples(
        &self,
        prompts: &Prompts,
        samples: u32,
        until: Instant,
    ) -> Vec<Result<Sample, SampleError>> {
        self.ask(self.settings.model.clone(), samples, prompts, None, until).samples
    }

    fn ask(
        &self,
        model: String,
        samples: u32,
        prompts: &Prompts,
        store: Option<&Store>,
        until: Instant,
    ) -> Answers<SampleError> {
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
        // Sample 0 is a single question at temperature 0; repeated samples have another temperature and must not share its cache entry.
        let mut questions: Vec<Question> = match samples {
            1 => vec![question(&prompts.key, &prompts.user, 0, 0.0)],
            several => (1..=several)
                .map(|sample| question(&prompts.key, &prompts.user, sample, SAMPLING_TEMPERATURE))
                .collect(),
        };
        questions.extend(
            prompts.probes.iter().zip(&prompts.probe_keys).map(|(user, key)| question(key, user, 0, 0.0)),
        );
        let (mut answers, cost) = self.answers(&model, &questions, store, until);
        let probes = answers.split_off(answers.len().saturating_sub(prompts.probes.len()));
        Answers { model, samples: answers, probes, cost_usd: cost }
    }

    /// Answers in the order of questions, and their cost; `None` if a price is not known.
    fn answers(
        &self,
        model: &str,
        questions: &[Question],
        store: Option<&Store>,
        until: Instant,
    ) -> (Vec<Result<Sample, SampleError>>, Option<f64>) {
        let cache_name = cache_name(&self.client, model);
        let mut answers: Vec<Option<Result<Sample, SampleError>>> = questions
            .iter()
            .map(|question| {
                let kept = store?.judged(&question.key, &cache_name, question.sample)?;
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
                            *place = Some(Err(SampleError::Budget(problem.clone())));
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
                        *place = Some(read_reply(reply, question, &cache_name, store));
                    }
                }
            }
        }
        let answers = answers.into_iter().map(|answer| answer.unwrap_or(Err(SampleError::NotAsked)));
        (answers.collect(), cost)
    }

    /// Cost of a call, in dollars; `None` if the price is not known. Providers bill calls with unusable answers too; without token counts the
    /// upper bound is charged.
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
            ) => self.max_cost(model, request),
            Err(_) => Some(0.0),
        }
    }

    /// Upper bound of the cost of a call: no tokenizer makes more tokens than there are bytes.
    fn max_cost(&self, model: &str, request: &ChatRequest) -> Option<f64> {
        let said = request.messages.iter().map(|message| message.content.len()).sum::<usize>();
        self.price(model, (request.system.len() + said) as u64, u64::from(request.max_tokens))
    }

    fn price(&self, model: &str, read: u64, written: u64) -> Option<f64> {
        match self.settings.price {
            Some((input, output)) => Some((read as f64 * input + written as f64 * output) / 1e6),
            None => cost_usd(model, read, written),
        }
    }

    /// Reserves the upper bound of the cost of these requests. Without a budget nothing is refused.
    fn reserve(&self, model: &str, requests: &[ChatRequest]) -> Result<f64, BudgetError> {
        let Some(budget) = self.settings.budget_usd else { return Ok(0.0) };
        let most = requests
            .iter()
            .map(|request| self.max_cost(model, request))
            .try_fold(0.0, |sum, one| Some(sum + one?));
        let most = most.ok_or_else(|| BudgetError::UnknownPrice { model: model.to_owned() })?;
        let mut spent = self.spent.lock().map_err(|_| BudgetError::Unreadable)?;
        if *spent + most > budget {
            return Err(BudgetError::UsedUp { budget, spent: *spent, most });
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

    /// Generates the next message of a simulated user.
    pub fn simulate_user(
        &self,
        mut request: ChatRequest,
        within: Duration,
    ) -> Result<String, SimulationError> {
        request.model.clone_from(&self.settings.model);
        let promised =
            self.reserve(&request.model, std::slice::from_ref(&request)).map_err(SimulationError::Budget)?;
        let reply = self.client.chat(&request, within);
        let spent = self.cost(&request.model, &reply, &request);
        self.settle(promised, spent.unwrap_or(promised));
        reply.map(|reply| reply.text).map_err(SimulationError::Provider)
    }
}

/// Error of generating a message of a simulated user.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// The budget does not allow the call.
    #[error(transparent)]
    Budget(BudgetError),
    /// The provider failed.
    #[error(transparent)]
    Provider(ProviderError),
}

fn read_reply(
    reply: Result<ChatReply, ProviderError>,
    question: &Question,
    cache_name: &str,
    store: Option<&Store>,
) -> Result<Sample, SampleError> {
    let reply = reply.map_err(SampleError::Provider)?;
    let sample = Sample::parse(&reply.text).map_err(SampleError::Answer)?;
    if let Some(store) = store {
        let kept = JudgedAnswer {
            score: sample.score,
            explanation: sample.explanation.clone(),
            input_tokens: reply.input_tokens.unwrap_or_default(),
            output_tokens: reply.output_tokens.unwrap_or_default(),
        };
        store.keep_judged(&question.key, cache_name, question.sample, kept);
    }
    Ok(sample)
}

/// Model name in cache keys, with the address unless it is the vendor's own: the same name elsewhere is another model.
fn cache_name(client: &Client, model: &str) -> String {
    let endpoint = client.endpoint();
    let url = endpoint.base_url.trim_end_matches('/');
    if url == endpoint.vendor.usual_base_url() { model.to_owned() } else { format!("{model} at {url}") }
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}
