/** What each role may read, besides the views of the data teams. On one server and on shards it is the same. */
import type { ShardUser } from './shards.ts'

export const readableTables: Readonly<Record<ShardUser, readonly string[]>> = {
  pledgeview_analyst: [],
  pledgeview_query: [
    ...['api_keys', 'identity', 'generation_log', 'revoked_keys', 'campaigns', 'watermarks', 'watermark'],
    ...['campaign_changes', 'campaign_pages', 'campaign_by_slug', 'removals', 'projector_stops'],
  ],
  pledgeview_portal: [
    ...['api_keys', 'api_key_ledger', 'account_ledger', 'notice_ledger', 'identity', 'api_key_usage'],
    ...['projector_stops', 'api_key_requests', 'freshness'],
  ],
}
