-- One row per estimate: every number with its family and all that it rests on.
with families(family, members) as (
    values
        ('effect', [
            'asr', 'asr_bounds', 'mps', 'mps_sham', 'dasr', 'los',
            'standardised_effect', 'detection_gain', 'detection_power', 'flips_up',
            'flips_down', 'flip_direction', 'robustness_rate', 'consistency_rate',
            'excess_flips'
        ]),
        ('floor', [
            'sham_floor', 'replicate_floor', 'prompt_sensitivity', 'random_baseline',
            'random_baseline_coin'
        ]),
        ('validity', [
            'valid_rate', 'invalid_rate', 'abstain_rate', 'ambiguous_rate',
            'missing_rate', 'cached_rate', 'saved_rate', 'differential_attrition'
        ]),
        ('position', [
            'position_consistency', 'primacy', 'recency', 'preference_fairness',
            'lenient_consistency', 'position_kappa', 'position_kappa_once',
            'first_pick_share', 'position_gap', 'primacy_test',
            'within_order_agreement', 'across_order_agreement', 'excess_conflict',
            'repetition_stability', 'repetition_stability_asked', 'swap_win_rate',
            'swap_tie_rate', 'swap_inconsistent_rate', 'tie_rate'
        ]),
        ('accuracy', [
            'accuracy', 'accuracy_12', 'accuracy_21', 'accuracy_valid', 'both_right',
            'order_agreement', 'order_agreement_llmbar', 'order_kappa',
            'accuracy_before', 'accuracy_after', 'accuracy_change'
        ]),
        ('agreement', [
            'agreement', 'agreement_decided', 'cohen_kappa', 'cohen_kappa_linear',
            'cohen_kappa_quadratic', 'gwet_ac1', 'fleiss_kappa',
            'krippendorff_alpha_nominal', 'krippendorff_alpha_ordinal',
            'krippendorff_alpha_interval', 's1_macro', 's1_micro', 's2_macro',
            's2_micro', 'noise_ceiling', 'below_ceiling', 'ceiling_ratio',
            'agreement_small_gap', 'agreement_middle_gap', 'agreement_large_gap'
        ]),
        ('comparison', [
            'mps_contrast', 'mps_sham_contrast', 'los_contrast', 'asr_contrast', 'mcnemar',
            'rank', 'tier'
        ]),
        ('jury', [
            'jury_mps', 'jury_mps_sham', 'jury_asr', 'jury_sham_floor', 'jury_dasr',
            'jury_correlation', 'jury_size'
        ]),
        ('sequence', [
            'sequential_shift', 'sequential_stop', 'e_value', 'e_stop'
        ]),
        ('drift', [
            'mps_drift', 'dasr_drift', 'position_drift', 'agreement_drift',
            'verdict_drift'
        ]),
        ('correction', [
            'win_rate_naive', 'win_rate', 'win_rate_difference', 'length_controlled',
            'length_slope', 'bt_strength', 'style_controlled', 'order_effect',
            'length_effect', 'markup_effect', 'human_win_rate', 'ppi_win_rate',
            'ppi_difference', 'label_correlation', 'effective_labels', 'labels_needed',
            'rogan_gladen', 'self_score_error', 'bias_bound', 'tipping_shift'
        ])
),
named as (select family, unnest(members) as statistic from families)
select
    study, family, statistic, dataset, judge, nullif(subgroup, '') as subgroup, prompt, wave, mode,
    perturbation, kind, simulated, estimate, low, high, level, boot_low, boot_high, standard_error,
    p_value, hits, n, clusters, dropped, votes_per_pair, method, reason,
from estimates
join named using (statistic)
