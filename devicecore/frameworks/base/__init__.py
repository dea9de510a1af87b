"""What the frameworks have in common: what each can do, and how one of them is found."""
