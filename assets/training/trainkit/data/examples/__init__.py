"""Examples of which the tokens of answers alone count in the loss: chats, and preference pairs."""
