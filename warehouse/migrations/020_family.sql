-- Statistics declare their families; here are those of results that were saved before.
alter table estimates add column family varchar;
update estimates set family = 'effect' where statistic in (
    'asr', 'asr_bounds', 'mps', 'mps_sham', 'dasr', 'dasr_posterior', 'los', 'los_sham', 'shift_spread',
    'mean_square_shift', 'standardised_effect', 'category_shift', 'category_spread', 'detection_gain',
    'detection_power', 'detection_share', 'flips_up', 'flips_down', 'flip_direction', 'robustness_rate',
    'consistency_rate', 'excess_flips', 'mean_shift', 'mean_asr', 'mean_dasr'
);
update estimates set family = 'floor' where statistic in (
    'sham_floor', 'sham_shift', 'sham_difference', 'replicate_floor', 'prompt_sensitivity', 'random_baseline',
    'random_baseline_coin', 'mean_sham_floor'
);
update estimates set family = 'validity' where statistic in (
    'valid_rate', 'invalid_rate', 'abstain_rate', 'ambiguous_rate', 'missing_rate', 'cached_rate',
    'saved_rate', 'lost_over_control', 'lost_over_sham', 'lost_rate', 'unanimous_rate'
);
update estimates set family = 'position' where statistic in (
    'position_consistency', 'primacy', 'recency', 'preference_fairness', 'lenient_consistency',
    'position_kappa', 'position_kappa_once', 'first_pick_share', 'position_gap', 'primacy_test',
    'within_order_agreement', 'across_order_agreement', 'excess_conflict', 'repetition_stability',
    'repetition_stability_asked', 'swap_win_rate', 'swap_tie_rate', 'swap_inconsistent_rate', 'tie_rate'
);
update estimates set family = 'accuracy' where statistic in (
    'accuracy', 'accuracy_12', 'accuracy_21', 'accuracy_valid', 'both_right', 'order_agreement',
    'order_agreement_llmbar', 'order_kappa', 'accuracy_before', 'accuracy_after', 'accuracy_change'
);
update estimates set family = 'agreement' where statistic in (
    'agreement', 'agreement_decided', 'cohen_kappa', 'cohen_kappa_linear', 'cohen_kappa_quadratic',
    'gwet_ac1', 'fleiss_kappa', 'krippendorff_alpha_nominal', 'krippendorff_alpha_ordinal',
    'krippendorff_alpha_interval', 's1_macro', 's1_micro', 's2_macro', 's2_micro', 'noise_ceiling',
    'below_ceiling', 'ceiling_ratio', 'agreement_small_gap', 'agreement_middle_gap', 'agreement_large_gap'
);
update estimates set family = 'comparison' where statistic in (
    'mps_contrast', 'mps_sham_contrast', 'los_contrast', 'asr_contrast', 'mcnemar', 'rank', 'tier'
);
update estimates set family = 'jury' where statistic in (
    'jury_mps', 'jury_mps_sham', 'jury_asr', 'jury_sham_floor', 'jury_dasr', 'jury_detection_gain',
    'jury_detection_power', 'jury_detection_share', 'jury_sham_shift', 'jury_correlation', 'jury_size',
    'jury_flips_up', 'jury_flips_down', 'jury_flip_direction', 'jury_robustness_rate',
    'jury_consistency_rate', 'jury_excess_flips', 'jury_accuracy', 'jury_position_consistency',
    'jury_error_correlation', 'jury_error_size'
);
update estimates set family = 'sequence' where statistic in (
    'sequential_shift', 'sequential_stop', 'e_value', 'e_stop'
);
update estimates set family = 'drift' where statistic in (
    'mps_drift', 'dasr_drift', 'position_drift', 'agreement_drift', 'verdict_drift', 'text_drift',
    'token_drift'
);
update estimates set family = 'correction' where statistic in (
    'win_rate_naive', 'win_rate', 'win_rate_difference', 'length_controlled', 'length_slope', 'bt_strength',
    'style_controlled', 'order_effect', 'length_effect', 'header_effect', 'list_effect', 'bold_effect',
    'other_effect', 'markup_effect', 'human_win_rate', 'ppi_win_rate', 'ppi_difference', 'label_correlation',
    'effective_labels', 'labels_needed', 'rogan_gladen', 'self_score_error', 'bias_bound', 'tipping_shift'
);
