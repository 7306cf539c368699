#!/bin/sh
# Creates the namespace where it is missing and sets how long it keeps histories. Safe to repeat.
# TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE are read by the client itself.
set -eu

# An operator may Reset a run for as long as its ledger is kept, which is 90 days.
retention=90d

ensure() {
    temporal operator cluster health || return 1
    if temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1; then
        temporal operator namespace update --namespace "$TEMPORAL_NAMESPACE" --retention "$retention"
    else
        temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention "$retention"
    fi
}

# A server that has just started answers late, and one that has just made a namespace cannot change it yet.
tries=30
until ensure; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || exit 1
    sleep 2
done
