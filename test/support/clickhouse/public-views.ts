/** The data teams' views, in the order of their names. A view that is added to the contract is added here. */
export const publicViews: readonly string[] = [
  'about',
  'campaign_days',
  'campaigns',
  'categories',
  'category_funding_days',
  'funding_days',
  'platform_totals',
  'rewards',
]

/** The views of the model itself that the public ones, the query service or the portal read. */
export const privateViews: readonly string[] = [
  'campaign_by_slug',
  'campaign_changes',
  'campaign_pages',
  'history_days',
  'history_end',
  'history_moves',
  'removals',
  'revoked_keys',
  'watermark',
]
