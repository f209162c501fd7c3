#!/bin/sh
# Create the login of the service. PostgreSQL's image runs this once, when it creates the database.
set -eu
password=$(cat "${SERVICE_PASSWORD_FILE:-/run/secrets/service_password}")
psql --set ON_ERROR_STOP=1 --set password="$password" --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
SELECT 'CREATE ROLE waylore_app NOLOGIN' WHERE to_regrole('waylore_app') IS NULL \gexec
CREATE ROLE waylore_service LOGIN PASSWORD :'password' IN ROLE waylore_app;
SQL
