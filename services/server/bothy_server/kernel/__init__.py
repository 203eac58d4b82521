"""What every feature may use: clock, ids, problems, the unit of work. The standard library and the wire only."""
