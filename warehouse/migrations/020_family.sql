-- Statistics declare their families; here are those of results that were saved before.
-- Not by updates: DuckDB commits no transaction that updates rows of a table and then alters it.
alter table estimates add column family varchar;
alter table estimates alter column family set data type varchar using case
    when statistic in (
        'asr', 'asr_bounds', 'mps', 'mps_sham', 'dasr', 'dasr_posterior', 'los', 'los_sham', 'shift_spread',
        'mean_square_shift', 'standardised_effect', 'category_shift', 'category_spread', 'detection_gain',
        'detection_power', 'detection_share', 'flips_up', 'flips_down', 'flip_direction', 'robustness_rate',
        'consistency_rate', 'excess_flips', 'mean_shift', 'mean_asr', 'mean_dasr'
    ) then 'effect'
    when statistic in (
        'sham_floor', 'sham_shift', 'sham_difference', 'replicate_floor', 'prompt_sensitivity', 'random_baseline',
        'random_baseline_coin', 'mean_sham_floor'
    ) then 'floor'
    when statistic in (
        'valid_rate', 'invalid_rate', 'abstain_rate', 'ambiguous_rate', 'missing_rate', 'cached_rate',
        'saved_rate', 'lost_over_control', 'lost_over_sham', 'lost_rate', 'unanimous_rate'
    ) then 'validity'
    when statistic in (
        'position_consistency', 'primacy', 'recency', 'preference_fairness', 'lenient_consistency',
        'position_kappa', 'position_kappa_once', 'first_pick_share', 'position_gap', 'primacy_test',
        'within_order_agreement', 'across_order_agreement', 'excess_conflict', 'repetition_stability',
        'repetition_stability_asked', 'swap_win_rate', 'swap_tie_rate', 'swap_inconsistent_rate', 'tie_rate'
    ) then 'position'
    when statistic in (
        'accuracy', 'accuracy_12', 'accuracy_21', 'accuracy_valid', 'both_right', 'order_agreement',
        'order_agreement_llmbar', 'order_kappa', 'accuracy_before', 'accuracy_after', 'accuracy_change'
    ) then 'accuracy'
    when statistic in (
        'agreement', 'agreement_decided', 'cohen_kappa', 'cohen_kappa_linear', 'cohen_kappa_quadratic',
        'gwet_ac1', 'fleiss_kappa', 'krippendorff_alpha_nominal', 'krippendorff_alpha_ordinal',
        'krippendorff_alpha_interval', 's1_macro', 's1_micro', 's2_macro', 's2_micro', 'noise_ceiling',
        'below_ceiling', 'ceiling_ratio', 'agreement_small_gap', 'agreement_middle_gap', 'agreement_large_gap'
    ) then 'agreement'
    when statistic in (
        'mps_contrast', 'mps_sham_contrast', 'los_contrast', 'asr_contrast', 'mcnemar', 'rank', 'tier'
    ) then 'comparison'
    when statistic in (
        'jury_mps', 'jury_mps_sham', 'jury_asr', 'jury_sham_floor', 'jury_dasr', 'jury_detection_gain',
        'jury_detection_power', 'jury_detection_share', 'jury_sham_shift', 'jury_correlation', 'jury_size',
        'jury_flips_up', 'jury_flips_down', 'jury_flip_direction', 'jury_robustness_rate',
        'jury_consistency_rate', 'jury_excess_flips', 'jury_accuracy', 'jury_position_consistency',
        'jury_error_correlation', 'jury_error_size'
    ) then 'jury'
    when statistic in (
        'sequential_shift', 'sequential_stop', 'e_value', 'e_stop'
    ) then 'sequence'
    when statistic in (
        'mps_drift', 'dasr_drift', 'position_drift', 'agreement_drift', 'verdict_drift', 'text_drift',
        'token_drift'
    ) then 'drift'
    when statistic in (
        'win_rate_naive', 'win_rate', 'win_rate_difference', 'length_controlled', 'length_slope', 'bt_strength',
        'style_controlled', 'order_effect', 'length_effect', 'header_effect', 'list_effect', 'bold_effect',
        'other_effect', 'markup_effect', 'human_win_rate', 'ppi_win_rate', 'ppi_difference', 'label_correlation',
        'effective_labels', 'labels_needed', 'rogan_gladen', 'self_score_error', 'bias_bound', 'tipping_shift'
    ) then 'correction'
end;
