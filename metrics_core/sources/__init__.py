"""Where judgements and rankings come from; each module matches one kind of them."""
