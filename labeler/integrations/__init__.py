"""What most users never run; nothing imports an integration but its own command."""
