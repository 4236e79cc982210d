//! Sampling of traces. The edge decides once per request whether it is recorded, and all services follow.
//!
//! `OTEL_TRACES_SAMPLER` and its argument apply, with two differences. Without a sampler one request in a
//! hundred is recorded, not each. And the sampled flag of clients is followed only so many times a second,
//! because any client can set it on each request, and recording costs more than answering.

use std::num::NonZeroU32;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use crate::Env;

/// Default share of requests that are recorded.
const DEFAULT_SHARE: f64 = 0.01;

/// Default number of requests a second that are recorded because the client set the sampled flag.
const DEFAULT_FLAGS_PER_S: u32 = 10;

/// Decides which traces are recorded.
#[derive(Debug)]
pub struct Sampler {
    follows_client: bool,
    share: f64,
    /// Limits how many sampled flags are followed; `None` = none.
    sampled_flags: Option<DefaultDirectRateLimiter>,
}

impl Sampler {
    /// Reads `OTEL_TRACES_SAMPLER`, `OTEL_TRACES_SAMPLER_ARG` and `MESH_TRACE_WISHES_PER_S`.
    pub fn read(env: &mut Env) -> Self {
        let sampler = Self::of_own_traces(env);
        let per_s = NonZeroU32::new(env.or("MESH_TRACE_WISHES_PER_S", DEFAULT_FLAGS_PER_S));
        let sampled_flags = per_s.map(|per_s| RateLimiter::direct(Quota::per_second(per_s)));
        Self { sampled_flags, ..sampler }
    }

    /// Reads the same for traces that no client begins.
    pub fn of_own_traces(env: &mut Env) -> Self {
        let sampler = env.or("OTEL_TRACES_SAMPLER", "parentbased_traceidratio".to_owned());
        let (follows_client, root) = match sampler.strip_prefix("parentbased_") {
            Some(root) => (true, root),
            None => (false, sampler.as_str()),
        };
        let share = match root {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => env.or("OTEL_TRACES_SAMPLER_ARG", DEFAULT_SHARE),
            _ => {
                env.mistake("OTEL_TRACES_SAMPLER is not a supported sampler");
                DEFAULT_SHARE
            }
        };
        if !(0.0..=1.0).contains(&share) {
            env.mistake("OTEL_TRACES_SAMPLER_ARG must be between 0 and 1");
        }
        Self { follows_client, share, sampled_flags: None }
    }

    /// Whether a request is recorded. `client`: the client's sampled flag, if it sent one.
    pub fn should_sample(&self, client: Option<bool>) -> bool {
        match client.filter(|_| self.follows_client) {
            Some(false) => false,
            Some(true) if self.sampled_flags.as_ref().is_some_and(|flags| flags.check().is_ok()) => true,
            _ => rand::random::<f64>() < self.share,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampling(variables: &[(&str, &str)]) -> (Sampler, usize) {
        let pairs = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let mut env = Env::of(pairs);
        let sampling = Sampler::read(&mut env);
        (sampling, env.mistakes().len())
    }

    fn recorded(sampling: &Sampler, client: Option<bool>) -> usize {
        (0..10_000).filter(|_| sampling.should_sample(client)).count()
    }

    #[test]
    fn one_in_a_hundred_is_recorded_unless_it_is_set() {
        let (usual, mistakes) = sampling(&[]);
        assert_eq!(mistakes, 0);
        // Bounds of six standard deviations.
        assert!((40..160).contains(&recorded(&usual, None)));
        for (sampler, share) in [("parentbased_always_on", 10_000), ("always_on", 10_000), ("always_off", 0)]
        {
            assert_eq!(recorded(&sampling(&[("OTEL_TRACES_SAMPLER", sampler)]).0, None), share, "{sampler}");
        }
    }

    #[test]
    fn a_client_is_followed_within_bounds() {
        let (none, _) = sampling(&[("OTEL_TRACES_SAMPLER", "parentbased_always_off")]);
        assert_eq!(recorded(&none, Some(false)), 0);
        let granted = recorded(&none, Some(true));
        assert!(
            (10..1000).contains(&granted),
            "a second's worth, and what the test's own time brings: {granted}"
        );
        let (all, _) = sampling(&[("OTEL_TRACES_SAMPLER", "parentbased_always_on")]);
        assert_eq!(recorded(&all, Some(false)), 0, "a client may say no");
        let (deaf, _) = sampling(&[("OTEL_TRACES_SAMPLER", "always_on")]);
        assert_eq!(recorded(&deaf, Some(false)), 10_000);
        let (never, _) =
            sampling(&[("OTEL_TRACES_SAMPLER", "parentbased_always_off"), ("MESH_TRACE_WISHES_PER_S", "0")]);
        assert_eq!(recorded(&never, Some(true)), 0);
    }

    #[test]
    fn invalid_values_are_mistakes() {
        for wrong in [
            [("OTEL_TRACES_SAMPLER", "sometimes"), ("X", "x")],
            [("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "2")],
            [("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "many")],
        ] {
            assert_eq!(sampling(&wrong).1, 1, "{wrong:?}");
        }
    }
}
