-- One row per study, judge, prompt and wave, and perturbation (null: the control arm): position bias.
select
    study, dataset, judge, prompt, wave, perturbation, simulated,
    max(estimate) filter (statistic = 'position_consistency') as position_consistency,
    max(low) filter (statistic = 'position_consistency') as low,
    max(high) filter (statistic = 'position_consistency') as high,
    max(estimate) filter (statistic = 'primacy') as primacy,
    max(estimate) filter (statistic = 'recency') as recency,
    max(estimate) filter (statistic = 'preference_fairness') as preference_fairness,
    max(n) filter (statistic = 'position_consistency') as n,
    max(dropped) filter (statistic = 'position_consistency') as dropped,
    max(estimate) filter (statistic = 'position_kappa') as position_kappa,
    max(low) filter (statistic = 'position_kappa') as position_kappa_low,
    max(high) filter (statistic = 'position_kappa') as position_kappa_high,
    max(estimate) filter (statistic = 'first_pick_share') as first_pick_share,
    max(estimate) filter (statistic = 'position_gap') as position_gap,
    max(low) filter (statistic = 'position_gap') as position_gap_low,
    max(high) filter (statistic = 'position_gap') as position_gap_high,
    max(p_value) filter (statistic = 'position_gap') as position_gap_p,
    max(p_value) filter (statistic = 'primacy_test') as primacy_test_p,
    max(estimate) filter (statistic = 'within_order_agreement') as within_order_agreement,
    max(estimate) filter (statistic = 'across_order_agreement') as across_order_agreement,
    max(estimate) filter (statistic = 'excess_conflict') as excess_conflict,
    max(low) filter (statistic = 'excess_conflict') as excess_conflict_low,
    max(high) filter (statistic = 'excess_conflict') as excess_conflict_high,
    max(estimate) filter (statistic = 'repetition_stability') as repetition_stability,
    max(estimate) filter (statistic = 'tie_rate') as tie_rate,
    max(estimate) filter (statistic = 'swap_win_rate') as swap_win_rate,
    max(estimate) filter (statistic = 'swap_tie_rate') as swap_tie_rate,
    max(estimate) filter (statistic = 'swap_inconsistent_rate') as swap_inconsistent_rate,
    max(estimate) filter (statistic = 'lenient_consistency') as lenient_consistency,
from estimates
where
    subgroup = ''
    and statistic in (
        'position_consistency', 'primacy', 'recency', 'preference_fairness', 'position_kappa',
        'first_pick_share', 'position_gap', 'primacy_test', 'within_order_agreement',
        'across_order_agreement', 'excess_conflict', 'repetition_stability', 'tie_rate',
        'swap_win_rate', 'swap_tie_rate', 'swap_inconsistent_rate', 'lenient_consistency'
    )
group by all
