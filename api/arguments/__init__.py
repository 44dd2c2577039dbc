"""Arguments of users' functions: which are static or donated, their structures and types, errors about them."""
