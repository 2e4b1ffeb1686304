"""Statistics that go with the numbers: intervals, agreement, and means corrected by people."""
