-- The agreement beyond chance has a finding too. Earlier calibrations had no limit of their own.
update human_agreements set finding = case
        when clusters < 10 then 'inconclusive'
        when low > .2 then 'agrees'
        when high <= .2 then 'does not agree'
        else 'inconclusive'
    end
    where finding is null and slice_column is null and low is not null
    and statistic = if(kind = 'grade', 'spearman', 'kappa');
