//! The choice of a candidate.

use std::sync::Arc;

use tool_core::{Instant, Jitter, Tool};

use crate::{
    Obstacle, RouteDefinition,
    candidates::Candidates,
    score::{HealthFigures, Out, Scored},
};

/// Share by which the load of another candidate must be smaller to be preferred to the leading one.
const MARGIN: f64 = 0.2;
/// Difference of scores up to which candidates are equally good.
const EQUAL: f64 = 1e-6;

/// Candidates of one call, in the order in which they are tried. The scores are those of its beginning.
pub(crate) struct Ranking<'a> {
    route: &'a RouteDefinition,
    candidates: &'a Candidates,
    health: Arc<[HealthFigures]>,
    now: Instant,
    /// Scores; negative infinity for candidates that are out.
    initial: Vec<f64>,
    /// Scores of the candidates that are left; negative infinity for the others.
    scores: Vec<f64>,
    /// `true` if the next candidate that is taken may lead from then on: it is the first of this call, and the leading one is
    /// not just out for this caller.
    may_lead: bool,
    /// Candidates that are out although their figures are good enough.
    obstacles: Vec<(usize, Obstacle)>,
}

const TAKEN: f64 = f64::NEG_INFINITY;

impl<'a> Ranking<'a> {
    pub(crate) fn new(
        route: &'a RouteDefinition,
        candidates: &'a Candidates,
        health: Arc<[HealthFigures]>,
        now: Instant,
    ) -> Self {
        let indexes = 0..candidates.entries.len();
        let scores = indexes.map(|index| {
            let score = candidates.scored(index, &health, now).score(route, |_, _| {});
            score.unwrap_or(TAKEN)
        });
        let initial: Vec<_> = scores.collect();
        Self {
            scores: initial.clone(),
            initial,
            route,
            candidates,
            health,
            now,
            may_lead: true,
            obstacles: Vec::new(),
        }
    }

    /// Takes the next candidate: the leading one as long as it is about as good as the best, or the best. Of those that are
    /// equally good, two are compared by their load, and the leading one stays unless the other's is clearly smaller (the
    /// power of two choices: Mitzenmacher, 2001). `obstacle` tells what prevents a call of a tool. A dry run changes nothing.
    pub(crate) fn next(
        &mut self,
        obstacle: &dyn Fn(&Tool) -> Option<Obstacle>,
        jitter: &Jitter,
        is_dry_run: bool,
    ) -> Option<usize> {
        loop {
            let best = self.best()?;
            let lead = self.candidates.leader().filter(|lead| {
                let score = self.scores[*lead];
                score > TAKEN && self.scores[best] - score <= self.route.hysteresis
            });
            let first = match lead {
                Some(lead) => lead,
                None => self.draw(self.scores[best] - EQUAL, None, jitter).unwrap_or(best),
            };
            let rival = self.draw(self.scores[first] - EQUAL, Some(first), jitter);
            let margin = if lead.is_some() { 1.0 - MARGIN } else { 1.0 };
            let (own, other) = (self.scored(first), rival.map(|rival| (rival, self.scored(rival))));
            let better = other.filter(|(_, other)| other.load() < own.load() * margin);
            let picked = better.as_ref().map_or(first, |(rival, _)| *rival);
            if let Some(found) = obstacle(&self.candidates.entries[picked].tool) {
                self.scores[picked] = TAKEN;
                self.may_lead &= found != Obstacle::Forbidden || lead != Some(picked);
                self.obstacles.push((picked, found));
                continue;
            }
            // Busy for the moment is no reason to lead no longer.
            let takes_over = lead.is_none()
                || better.is_some_and(|(_, other)| {
                    other.usual_latency().as_secs_f64() < own.usual_latency().as_secs_f64() * margin
                });
            if std::mem::take(&mut self.may_lead) && takes_over && !is_dry_run {
                self.candidates.set_leader(picked);
            }
            self.scores[picked] = TAKEN;
            return Some(picked);
        }
    }

    /// Takes this candidate, whatever its score is.
    pub(crate) fn take(&mut self, index: usize) {
        self.may_lead = false;
        self.scores[index] = TAKEN;
    }

    /// Returns `true` if another candidate is left, as far as figures tell.
    pub(crate) fn has_more(&self) -> bool {
        self.scores.iter().any(|score| *score > TAKEN)
    }

    /// Returns the index of the best score that is left.
    fn best(&self) -> Option<usize> {
        let mut best = None;
        let mut highest = TAKEN;
        for (index, score) in self.scores.iter().enumerate() {
            if *score > highest {
                (best, highest) = (Some(index), *score);
            }
        }
        best
    }

    /// Draws one of the candidates with at least this score, besides `except`.
    fn draw(&self, least: f64, except: Option<usize>, jitter: &Jitter) -> Option<usize> {
        let fits = |index: usize, score: f64| score >= least && Some(index) != except;
        let scores = || {
            self.scores
                .iter()
                .enumerate()
                .filter(|(index, score)| fits(*index, **score))
        };
        let n_fitting = scores().count();
        let drawn = match n_fitting {
            0 | 1 => 0,
            _ => jitter.below(n_fitting as u64) as usize,
        };
        scores().nth(drawn).map(|(index, _)| index)
    }

    fn scored(&self, index: usize) -> Scored<'_> {
        self.candidates.scored(index, &self.health, self.now)
    }

    /// Returns a candidate with its figures, and its score or why it is out, as at the beginning.
    pub(crate) fn judged(
        &self,
        index: usize,
        tell: impl FnMut(f64, &dyn Fn() -> String),
    ) -> (Scored<'_>, Result<f64, Out>) {
        let scored = self.scored(index);
        let score = scored.score(self.route, tell);
        (scored, score)
    }

    /// Returns the indexes of all candidates, the best first and those that are out last. Only the first `n` are in order.
    pub(crate) fn order(&self, n: usize) -> Vec<usize> {
        let mut order: Vec<_> = (0..self.initial.len()).collect();
        let compare = |one: &usize, other: &usize| self.initial[*other].total_cmp(&self.initial[*one]);
        let n = match n < order.len() {
            true => {
                order.select_nth_unstable_by(n, compare);
                n
            }
            false => order.len(),
        };
        order[..n].sort_by(compare);
        order
    }

    pub(crate) fn obstacle_of(&self, index: usize) -> Option<&Obstacle> {
        let mut obstacles = self.obstacles.iter();
        obstacles
            .find(|(of, _)| *of == index)
            .map(|(_, obstacle)| obstacle)
    }

    pub(crate) fn candidates(&self) -> &Candidates {
        self.candidates
    }

    pub(crate) fn route(&self) -> &RouteDefinition {
        self.route
    }
}
