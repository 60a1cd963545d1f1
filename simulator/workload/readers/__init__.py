"""One module per public format; each turns files into `table.Raw`, and knows no other."""
