//! Rolling restart and scaling of a group while it serves.
//!
//! As under Kubernetes, a successor is ready before its predecessor is stopped.

use futures_util::future::join_all;
use tokio::time::Instant;

use crate::{
    managed_process::{DesiredState, STOP_SLACK},
    supervisor::{ActiveGroup, Member, READY_DEADLINE, Role, Supervisor},
};

/// What happens to the requests of a service without replicas, and how to add one.
pub fn without_replicas(name: &str) -> String {
    let requests = match name {
        // The launcher has the socket open.
        "edge" => "connections wait for one",
        _ => "its requests are rejected",
    };
    format!("{name} has no replicas: {requests}; add one with `mesh scale {name}=1`")
}

type Outcome = Result<Option<String>, String>;

impl Supervisor {
    /// Replaces the replicas of a group in turn. Stopped ones stay stopped.
    pub(crate) async fn restart(&self, name: &str) -> Outcome {
        let (change_lock, scalable) =
            self.with_group(name, |group| (group.change_lock.clone(), group.definition.scalable))?;
        let _turn = change_lock.try_lock().map_err(|_| busy(name))?;
        let mut stopped = 0;
        for member in self.named(name, None)? {
            if member.process.is_stopped() {
                stopped += 1;
            } else if scalable {
                self.replace(name, &member).await?;
            } else {
                restart_in_place(&member).await?;
            }
        }
        Ok((stopped > 0)
            .then(|| format!("{stopped} held down, left as they are; bring them back with `mesh start`")))
    }

    /// Sets the number of replicas; those with the highest numbers are stopped first.
    pub(crate) async fn scale(&self, name: &str, replicas: u32) -> Outcome {
        let (change_lock, scalable) =
            self.with_group(name, |group| (group.change_lock.clone(), group.definition.scalable))?;
        if !scalable {
            return Err(format!("{name} runs once; only services can be scaled"));
        }
        let _turn = change_lock.try_lock().map_err(|_| busy(name))?;
        let present = self.with_group(name, |group| group.serving())?;
        let mut added = Vec::new();
        for replica in
            (0..replicas).filter(|replica| !present.iter().any(|member| member.replica == *replica))
        {
            let member =
                self.start_member(name, replica, Role::Serving).map_err(|error| error.to_string())?;
            added.push(member);
        }
        let leaving = present.iter().filter(|member| member.replica >= replicas);
        join_all(leaving.map(|member| self.retire(name, member))).await;
        let deadline = Instant::now() + READY_DEADLINE;
        for member in &added {
            if !member.process.is_ready_by(deadline).await {
                return Err(format!("{} is not ready yet; see its log", member.process.name));
            }
        }
        Ok((replicas == 0).then(|| without_replicas(name)))
    }

    /// Starts a successor, waits until it is ready, gives it the replica number and stops the old one.
    async fn replace(&self, name: &str, old: &Member) -> Result<(), String> {
        let successor =
            self.start_member(name, old.replica, Role::Successor).map_err(|error| error.to_string())?;
        let serves = successor.process.is_ready_by(Instant::now() + READY_DEADLINE).await;
        let takes_over = serves && !successor.process.state().gone && !old.process.is_stopped();
        if !takes_over {
            self.retire(name, &successor).await;
            if old.process.is_stopped() {
                return Ok(());
            }
            return Err(format!(
                "the successor of {} did not become ready and was stopped; the old one still serves; see its log",
                old.process.name
            ));
        }
        self.with_group(name, |group| {
            set_role(group, old, Role::Leaving);
            set_role(group, &successor, Role::Serving);
        })?;
        self.retire(name, old).await;
        Ok(())
    }

    /// Stops a member and removes it from the table. Until it has ended it is listed as leaving, so that a
    /// shutdown includes it.
    async fn retire(&self, name: &str, member: &Member) {
        let grace = member.process.grace;
        // An error means that the mesh is being stopped, which stops all members anyway.
        let _ = self.with_group(name, |group| set_role(group, member, Role::Leaving));
        member.process.set_desired(DesiredState::Gone(Instant::now() + grace));
        member.process.wait_until(Instant::now() + grace + STOP_SLACK, |state| state.gone).await;
        let _ = self.with_group(name, |group| group.members.retain(|other| !same(other, member)));
    }
}

fn set_role(group: &mut ActiveGroup, member: &Member, role: Role) {
    for other in group.members.iter_mut().filter(|other| same(other, member)) {
        other.role = role;
    }
}

fn same(one: &Member, other: &Member) -> bool {
    std::sync::Arc::ptr_eq(&one.process, &other.process)
}

/// Stops a process that cannot run twice at the same time, and starts it again.
async fn restart_in_place(member: &Member) -> Result<(), String> {
    member.process.set_desired(DesiredState::Stopped);
    let down = member.process.is_down().await;
    member.process.set_desired(DesiredState::Running);
    if down && member.process.is_ready_by(Instant::now() + READY_DEADLINE).await {
        return Ok(());
    }
    Err(format!("{} did not restart within {READY_DEADLINE:?}; see its log", member.process.name))
}

fn busy(name: &str) -> String {
    format!("{name} is already being restarted or scaled; retry when that is complete")
}
