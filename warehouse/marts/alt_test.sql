-- One row per study, judge, metric and margin (epsilon and its kind): may the judge replace people?
select
    study, dataset, judge, prompt, wave, metric, epsilon, epsilon_kind, asked, test, winning_rate, passed,
    advantage_probability, low, high, level, method, human_advantage_probability, tied, annotators, n, dropped,
    unreadable, reason, simulated,
from alt_tests
