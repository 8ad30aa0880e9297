/** How to keep a copy without a client. README.md, the OpenAPI document and the guide of the portal have these steps. Words in backticks are code. */
export const mirroringSteps = [
  'Walk: read all pages of `/projects` once. Keep the `X-Data-As-Of` of the first page: this is your watermark. The list has every change up to it.',
  'Once a minute or less often, first read all pages of `/removals?since=` the watermark, and delete from your copy each campaign that they name, if its `updated_at` in your copy is earlier than that of the removal. The first time after step 1 ask without `since`: what left while you walked may be in your copy.',
  'Then walk all pages of `/projects?updated_since=` the watermark. You get only what has changed. Replace each campaign of your copy by its `id`.',
  'The first page of the removals and the first page of the campaigns each have an `X-Data-As-Of`. Keep the earlier of the two as your next watermark. Save it together with the copy, after the whole walk.',
  'If a later page of a walk has another `X-Snapshot-Id` than the first one, entries may have moved between the pages: keep what you got, keep the old watermark, and read all pages again. Of the removals, which come with the earliest first, you need not: go on with `since=` the `updated_at` of the last one that you have.',
] as const
