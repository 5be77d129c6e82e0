//! Speaks with a Docker engine through its socket.
//!
//! The `docker` command costs more than what it asks for: it is a large program that is loaded for
//! each call. So the engine is asked directly, by its HTTP interface on a Unix socket. The
//! libraries for that bring an asynchronous runtime with its own threads, which has no place in
//! a process that measures, and hide the sockets, which here must be waited for together with other
//! things. Little is needed: one request on one connection, the answer read to its end, and
//! two calls that answer later.
//!
//! Version 1.41 of the interface is spoken, that of Docker 20.10 (December 2020). Podman's service
//! understands it, too.
//!
//! * [`Docker`]: the calls, each named after what it does;
//! * [`Attached`]: what a container writes, taken apart into its two streams;
//! * [`Exit`]: the end of a container, reported when it comes;
//! * `http`: requests and answers.
//!
//! Of an answer, only the members that are used are kept: as a tree, it would take a hundred times
//! its length.
#![forbid(unsafe_code)]

mod attached;
mod exit;
mod http;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use attached::{Attached, Stream};
pub use exit::Exit;
pub use http::RemainingTime;
use http::{Connection, Request};

/// How long most calls may take. Starting a container takes half a second on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
/// How much of what an engine says of a call that it refuses is kept, in characters, and how many
/// warnings.
const MOST_SAID: usize = 1_000;
const MOST_WARNINGS: usize = 10;

/// Says what went wrong with an engine.
#[derive(Debug, thiserror::Error)]
pub enum DockerError {
    /// It can't be reached, or the connection broke.
    #[error("the engine at {} can't be reached: {source}", socket.display())]
    Unreachable {
        /// Its socket.
        socket: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It refused a call.
    #[error("the engine refused to {what} (status {status}): {message}")]
    Refused {
        /// The request.
        what: &'static str,
        /// The HTTP status.
        status: u16,
        /// Its own words.
        message: String,
    },
    /// Its response is invalid.
    #[error("unexpected response from the Docker engine at {}: {why}", socket.display())]
    Nonsense {
        /// Its socket.
        socket: PathBuf,
        /// The reason.
        why: String,
    },
}

/// An engine, known by its socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Docker {
    socket: PathBuf,
}

/// A container that was made and not yet started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// Its id.
    pub id: String,
    /// The request that the engine rejected.
    pub warnings: Vec<String>,
}

/// The state of a container.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct State {
    /// The id of its first process; 0 if that has ended.
    pub pid: u32,
    /// Whether it ended because its memory was too little.
    #[serde(rename = "OOMKilled")]
    pub is_out_of_memory: bool,
}

/// An answer that names a container or an image.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Named {
    id: String,
    warnings: Option<Vec<String>>,
}

/// A part of the answer to an upload, or of a refusal.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Message {
    status: Option<String>,
    stream: Option<String>,
    error: Option<String>,
    message: Option<String>,
}

/// Lets all calls of this process end early: `left` returns how long one may still take. Only the
/// first word counts.
pub fn wait_by(left: RemainingTime) {
    let _ = http::LEFT.set(left);
}

impl Docker {
    /// Names an engine. It is not asked anything yet.
    pub fn at(socket: &Path) -> Self {
        Self {
            socket: socket.to_owned(),
        }
    }

    /// Returns its socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Asks for its version.
    ///
    /// # Errors
    ///
    /// Returns [`DockerError`], as do all calls.
    pub fn version(&self) -> Result<String, DockerError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Engine {
            version: String,
        }
        let engine: Engine = self.json(Request::new("GET", "/version"), "tell its version")?;
        Ok(engine.version)
    }

    /// Makes an image from a tar archive, with changes in the words of a Dockerfile, and returns
    /// its id.
    ///
    /// # Errors
    ///
    /// Returns [`DockerError`].
    pub fn import(&self, archive: &[u8], changes: &[&str]) -> Result<String, DockerError> {
        let mut path = "/images/create?fromSrc=-".to_owned();
        for change in changes {
            path.push_str("&changes=");
            path.push_str(&http::escape(change));
        }
        let last = self.upload(&path, archive.to_vec(), "import the image")?;
        last.status.ok_or_else(|| self.nameless())
    }

    /// Takes the images of an archive as `docker save` writes it, and returns the name or id of the
    /// last one.
    ///
    /// # Errors
    ///
    /// Returns [`DockerError`].
    pub fn load(&self, archive: Vec<u8>) -> Result<String, DockerError> {
        let last = self.upload("/images/load?quiet=1", archive, "load the image")?;
        let told = last.stream.ok_or_else(|| self.nameless())?;
        let (_, name) = told.trim_end().split_once(": ").unwrap_or(("", &told));
        Ok(name.to_owned())
    }

    /// Returns the id of an image that the engine has.
    ///
    /// # Errors
    ///
    /// Returns [`DockerError`].
    pub fn image_id(&self, name: &str) -> Result<String, DockerError> {
        let path = format!("/images/{}/json", http::escape(name));
        let image: Named = self.json(Request::new("GET", &path), "find the image")?;
        Ok(image.id)
    }

    /// Sends an archive, and returns the last object of the answer, which is a stream of them.
    fn upload(
        &self,
        path: &str,
        archive: Vec<u8>,
        what: &'static str,
    ) -> Result<Message, DockerError> {
        let request = Request::new("POST", path).body("application/x-tar", archive);
        let body = self.call(request, what)?;
        let messages = serde_json::Deserializer::from_slice(&body).into_iter::<Message>();
        let last = messages.filter_map(Result::ok).last().unwrap_or_default();
        match last.error {
            None => Ok(last),
            Some(message) => Err(DockerError::Refused {
                what,
                status: 200,
                message: one_line(&message),
            }),
        }
    }

    /// Makes a container.
    ///
    /// # Errors
    ///
    /// Returns [`DockerError`].
    pub fn create(&self, config: &Value) -> Result<Created, DockerError> {
        let body = config.to_string().into_bytes();
        let request = Request::new("POST", "/containers/create").body("application/json", body);
        let container: Named = self.json(request, "make the container")?;
        let warnings = container.warnings.iter().flatten().take(MOST_WARNINGS);
        Ok(Created {
            warnings: warnings.map(|text| one_line(text)).collect(),
            id: container.id,
        })
    }

    /// Connects to what a container writes from now on.
    ///
    /// # Errors
    ///
    /// Returns [`DockerError`].
    pub fn attach(&self, container: &str) -> Result<Attached, DockerError> {
        let path = format!("/containers/{container}/attach?stream=1&stdout=1&stderr=1");
        let request = Request::new("POST", &path).upgrade();
        let mut stream = self.send(&request, LIMIT)?;
        let head = http::read_head(&mut stream).map_err(|source| self.unreachable(source))?;
        match head.status {
            101 | 200 => {
                Attached::new(stream.into_stream()).map_err(|source| self.unreachable(source))
            }
            _ => {
                let body = head.read_body(stream);
                let body = body.map_err(|source| self.unreachable(source))?;
                Err(refused("attach to the container", head.status, &body))
            }
        }
    }

    /// Starts a container.
    ///
    /// # Errors
    ///
    /// Returns [`DockerError`].
    pub fn start(&self, container: &str) -> Result<(), DockerError> {
        let path = format!("/containers/{container}/start");
        self.call(Request::new("POST", &path), "start the container")?;
        Ok(())
    }

    /// Asks for a report when a container that was started has ended.
    ///
    /// # Errors
    ///
    /// Returns [`DockerError`].
    pub fn exit(&self, container: &str) -> Result<Exit, DockerError> {
        let path = format!("/containers/{container}/wait");
        let stream = self.send(&Request::new("POST", &path), LIMIT)?;
        Exit::new(stream.into_stream()).map_err(|source| self.unreachable(source))
    }

    /// Returns the state of a container.
    ///
    /// # Errors
    ///
    /// Returns [`DockerError`].
    pub fn state(&self, container: &str) -> Result<State, DockerError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Container {
            state: State,
        }
        let path = format!("/containers/{container}/json");
        let container: Container =
            self.json(Request::new("GET", &path), "inspect the container")?;
        Ok(container.state)
    }

    /// Sends a signal to the first process of a container: `KILL`.
    ///
    /// # Errors
    ///
    /// Returns [`DockerError`].
    pub fn signal(&self, container: &str, signal: &str) -> Result<(), DockerError> {
        let path = format!("/containers/{container}/kill?signal={signal}");
        self.call(Request::new("POST", &path), "signal the container")?;
        Ok(())
    }

    /// Removes a container, killing it if it runs. Says whether it was there.
    ///
    /// # Errors
    ///
    /// Returns [`DockerError`].
    pub fn remove_container(&self, container: &str) -> Result<bool, DockerError> {
        let path = format!("/containers/{container}?force=1&v=1");
        self.remove(&path, "remove the container")
    }

    /// Removes an image. Says whether it was there.
    ///
    /// # Errors
    ///
    /// Returns [`DockerError`].
    pub fn remove_image(&self, image: &str) -> Result<bool, DockerError> {
        self.remove(&format!("/images/{image}?force=1"), "remove the image")
    }

    /// Lists the ids of the containers that have a label, `name=value`, running or not.
    ///
    /// # Errors
    ///
    /// Returns [`DockerError`].
    pub fn containers_with(&self, label: &str) -> Result<Vec<String>, DockerError> {
        self.list("/containers/json?all=1&", label)
    }

    /// Lists the ids of the images that have a label, `name=value`.
    ///
    /// # Errors
    ///
    /// Returns [`DockerError`].
    pub fn images_with(&self, label: &str) -> Result<Vec<String>, DockerError> {
        self.list("/images/json?all=1&", label)
    }

    fn list(&self, path: &str, label: &str) -> Result<Vec<String>, DockerError> {
        let filters = serde_json::json!({ "label": [label] }).to_string();
        let path = format!("{path}filters={}", http::escape(&filters));
        let rows: Vec<Named> =
            self.json(Request::new("GET", &path), "list its containers or images")?;
        Ok(rows.into_iter().map(|row| row.id).collect())
    }

    fn remove(&self, path: &str, what: &'static str) -> Result<bool, DockerError> {
        match self.call(Request::new("DELETE", path), what) {
            Ok(_) => Ok(true),
            // Not there, or being removed already.
            Err(DockerError::Refused {
                status: 404 | 409, ..
            }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn json<T: DeserializeOwned>(
        &self,
        request: Request,
        what: &'static str,
    ) -> Result<T, DockerError> {
        let body = self.call(request, what)?;
        serde_json::from_slice(&body).map_err(|error| self.nonsense(error.to_string()))
    }

    /// Makes a call and returns the body of its answer.
    fn call(&self, request: Request, what: &'static str) -> Result<Vec<u8>, DockerError> {
        let mut stream = self.send(&request, LIMIT)?;
        let read = http::read_head(&mut stream)
            .and_then(|head| Ok((head.status, head.read_body(stream)?)));
        let (status, body) = read.map_err(|source| self.unreachable(source))?;
        match status {
            200..=299 | 304 => Ok(body),
            _ => Err(refused(what, status, &body)),
        }
    }

    fn send(&self, request: &Request, limit: Duration) -> Result<Connection, DockerError> {
        let sent = http::send(&self.socket, request, limit);
        sent.map_err(|source| self.unreachable(source))
    }

    /// Makes the error of an upload that is done, and whose answer does not name the image.
    fn nameless(&self) -> DockerError {
        self.nonsense("it names no image".to_owned())
    }

    fn unreachable(&self, source: io::Error) -> DockerError {
        let socket = self.socket.clone();
        DockerError::Unreachable { socket, source }
    }

    fn nonsense(&self, why: String) -> DockerError {
        let socket = self.socket.clone();
        DockerError::Nonsense { socket, why }
    }
}

fn refused(what: &'static str, status: u16, body: &[u8]) -> DockerError {
    let answer: Message = serde_json::from_slice(body).unwrap_or_default();
    let message = match answer.message {
        Some(message) => one_line(&message),
        None => one_line(&String::from_utf8_lossy(body)),
    };
    DockerError::Refused {
        what,
        status,
        message,
    }
}

/// Returns another one's words in one line, and not for long.
fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words = words.filter(|word| !word.is_empty()).take(MOST_SAID);
    let words: Vec<&str> = words.collect();
    words.join(" ").chars().take(MOST_SAID).collect()
}
