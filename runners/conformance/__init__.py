"""The conformance kit: drives any runner through the cases of the protocol.

It reaches a runner through its transport, so in process and as a program of its own alike, and needs neither
database nor Temporal: the host of a run is a `RecordingHost`.
"""

from runners.conformance.case import Case
from runners.conformance.endpoint import MODEL_NAME, ModelEndpoint, model_endpoint
from runners.conformance.kit import CASES, UnknownCase, select, verify
from runners.conformance.report import CaseReport, Report
from runners.conformance.target import Limits, Target
from runners.conformance.verdict import Outcome

__all__ = [
    "CASES",
    "MODEL_NAME",
    "Case",
    "CaseReport",
    "Limits",
    "ModelEndpoint",
    "Outcome",
    "Report",
    "Target",
    "UnknownCase",
    "model_endpoint",
    "select",
    "verify",
]
