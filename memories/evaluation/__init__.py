"""How good recall is, measured on data sets. Readers and metrics are pure; `runs` asks the real recall."""
