"""Reading a file into a team: our own export with its history, or what another memory keeps, as new memories."""
