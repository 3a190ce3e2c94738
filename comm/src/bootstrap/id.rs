use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use tutti_transport::handshake::Secret;

use crate::error::{Error, ErrorKind};

/// Where the ranks of a job meet, and the secret by which they know each other.
///
/// As text, `tutti:ADDRESS:PORT:SECRET`, it can be handed to other processes by any means. Whoever
/// has it can join the job.
#[derive(Clone, Debug)]
pub struct UniqueId {
    pub(crate) address: SocketAddr,
    pub(crate) secret: Secret,
}

impl fmt::Display for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tutti:{}:{}", self.address, self.secret.to_hex())
    }
}

impl FromStr for UniqueId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parts = text.strip_prefix("tutti:").and_then(|rest| rest.rsplit_once(':'));
        let id = parts.and_then(|(address, secret)| {
            Some(UniqueId { address: address.parse().ok()?, secret: Secret::from_hex(secret)? })
        });
        id.ok_or_else(|| {
            let what =
                "a unique id reads tutti:ADDRESS:PORT:SECRET, with 64 hexadecimal digits of secret";
            Error::new(
                None,
                ErrorKind::Argument(format!("{what}; this one has {} characters", text.len())),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_survives_text_with_both_address_families() {
        for address in ["127.0.0.1:5000", "[::1]:5000", "[fe80::1%3]:5000"] {
            let id = UniqueId { address: address.parse().unwrap(), secret: Secret::from_text("x") };
            let back: UniqueId = id.to_string().parse().unwrap();
            assert_eq!(back.address, id.address);
            assert_eq!(back.secret.to_hex(), id.secret.to_hex());
        }
    }

    #[test]
    fn bad_id_is_refused_without_showing_its_secret() {
        let secret = "ab".repeat(31);
        for text in ["", "tutti:", "nccl:127.0.0.1:1:00", &format!("tutti:127.0.0.1:5000:{secret}")]
        {
            let error = text.parse::<UniqueId>().unwrap_err().to_string();
            assert!(
                error.contains("tutti:ADDRESS:PORT:SECRET") && !error.contains(&secret),
                "{error}"
            );
        }
    }
}
