"""What every feature stands on: settings, database, unit of work, event log, audit, lifecycle, telemetry, http."""
