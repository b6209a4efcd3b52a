//! Members of containers, as signatures see them: by what the container says, and by their size.
//!
//! The findings are the container's.

use stream::{Finding, Object};

use super::Inspection;
use crate::node::{Form, Node};

impl Inspection {
    /// Compares what is said of a new member; the ticket under which its size is waited for.
    pub(super) fn enrol(&mut self, node: &mut Node, slot: usize, index: usize, object: &Object) -> Option<u64> {
        if node.readers[index].second_reading {
            return None;
        }
        let mut roll = node.roll.take()?;
        let mut findings = Vec::new();
        let ticket = roll.open(object, node.readers[index].at, &mut |finding| findings.push(finding));
        node.roll = Some(roll);
        self.spotted_all(node, slot, findings, false);
        ticket
    }

    /// The size of a member is known, now that it has passed.
    pub(super) fn strike_off(&mut self, member: &Node) {
        let Some((slot, ticket)) = self.container_slot(member).zip(member.ticket).filter(|_| member.form.is_none())
        else {
            return;
        };
        let Some(mut container) = self.nodes[slot].take() else { return };
        let mut findings = Vec::new();
        if let Some(roll) = &mut container.roll {
            roll.close(ticket, member.bytes, &mut |finding| findings.push(finding));
        }
        self.spotted_all(&mut container, slot, findings, false);
        self.nodes[slot] = Some(container);
    }

    /// The size of a container is known, now that it has passed.
    pub(super) fn conclude_roll(&mut self, node: &mut Node, slot: usize) {
        let Some(roll) = node.roll.take() else { return };
        let mut findings = Vec::new();
        roll.finish(node.bytes, &mut |finding| findings.push(finding));
        self.spotted_all(node, slot, findings, true);
    }

    /// The slot of the node that opened a member; between them lies its encoded form, if it has one.
    fn container_slot(&self, member: &Node) -> Option<usize> {
        let source = member.source?;
        let above = self.nodes[source].as_ref()?;
        if above.form == Some(Form::Encoded) { above.source } else { Some(source) }
    }

    fn spotted_all(&mut self, node: &mut Node, slot: usize, findings: Vec<Finding>, at_end: bool) {
        for finding in findings {
            self.spotted(node, slot, finding, at_end);
        }
    }
}
