"""What was really compared, and how a failure is told."""
