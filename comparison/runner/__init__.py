"""The comparison of leader electors: builds, trials, judgement, page."""
