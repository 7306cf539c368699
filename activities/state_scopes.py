"""Whose state a run may read and write: the scope keys of HOST 10."""

import hashlib
import json
from dataclasses import dataclass

from runhost.protocol import AgentEventEnvelope, StatePolicy

KEY_VERSION = 2


@dataclass(frozen=True)
class StateScopes:
    """The scopes that are enabled and have an identity, by name, and the binding they belong to."""

    keys: dict[str, str]
    binding_identity: str


def state_scopes(
    envelope: AgentEventEnvelope,
    policy: StatePolicy,
    *,
    workspace_id: str,
    runner_id: str,
    agent_id: str,
    binding_id: str | None,
) -> StateScopes:
    """Return the keys of every scope that the policy enables and the event has an identity for (H-S1 to H-S4)."""
    binding_identity = binding_id or f"agent:{agent_id}"
    keys: dict[str, str] = {}
    if policy.enable_state:
        for scope in policy.state_scopes:
            parts = _own_parts(scope, envelope)
            if parts is not None:
                identity = [
                    KEY_VERSION,
                    scope,
                    runner_id,
                    binding_identity,
                    envelope.bot_id,
                    workspace_id,
                    parts,
                ]
                keys[scope] = _key(scope, identity)
    return StateScopes(keys, binding_identity)


def _key(scope: str, identity: list[object]) -> str:
    canonical = json.dumps(identity, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return f"{scope}:v{KEY_VERSION}:{hashlib.sha256(canonical).hexdigest()}"


def _own_parts(scope: str, envelope: AgentEventEnvelope) -> list[str | None] | None:
    actor, subject = envelope.actor, envelope.subject
    if scope == "conversation" and envelope.conversation_id is not None:
        return [envelope.conversation_id, envelope.thread_id]
    if scope == "actor" and actor is not None and actor.actor_id is not None:
        return [actor.actor_type, actor.actor_id]
    if scope == "subject" and subject is not None and subject.subject_id is not None:
        return [subject.subject_type, subject.subject_id]
    return [] if scope == "runner" else None
