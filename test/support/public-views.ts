/** The data teams' views, in the order of their names. A view that is added to the contract is added here. */
export const publicViews: readonly string[] = [
  'about',
  'campaigns',
  'categories',
  'platform_totals',
  'rewards',
]
