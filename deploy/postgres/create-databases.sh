#!/bin/sh
# Runs once, when the data volume is new: a role with its databases for the facts, and one for Temporal.
# A role owns what it uses and sees nothing of the other's.
set -eu

psql --no-psqlrc --set=ON_ERROR_STOP=1 --username="${POSTGRES_USER:-postgres}" --dbname=postgres <<'SQL'
\getenv database_password DATABASE_PASSWORD
\getenv temporal_password TEMPORAL_PASSWORD
CREATE ROLE runhost LOGIN PASSWORD :'database_password';
CREATE ROLE temporal LOGIN PASSWORD :'temporal_password';
CREATE DATABASE runhost OWNER runhost;
CREATE DATABASE temporal OWNER temporal;
CREATE DATABASE temporal_visibility OWNER temporal;
REVOKE CONNECT ON DATABASE runhost, temporal, temporal_visibility FROM PUBLIC;
SQL
