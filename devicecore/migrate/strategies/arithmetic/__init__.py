"""What the strategies of several packages do with tensors."""
