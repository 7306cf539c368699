#!/bin/sh
# Brings Temporal's two databases to the schema of this image's version. Safe to repeat: what is applied stays.
# Connection settings come from SQL_PLUGIN, SQL_HOST, SQL_PORT, SQL_USER and SQL_PASSWORD.
set -eu

update() {
    temporal-sql-tool --database "$1" setup-schema --version 0.0
    temporal-sql-tool --database "$1" update-schema --schema-dir "/etc/temporal/schema/postgresql/v12/$2/versioned"
}

update temporal temporal
update temporal_visibility visibility
