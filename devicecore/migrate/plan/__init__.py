"""What a plan says, and which functions its keys name."""
