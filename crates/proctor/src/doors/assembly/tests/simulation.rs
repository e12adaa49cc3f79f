//! A day in the life of several agents, at random.
