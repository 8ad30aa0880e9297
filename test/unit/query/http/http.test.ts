import { expect, it } from 'vitest'
import { appOptionsOf } from '../../../../services/query/options.ts'
import { readConfig } from '../../../../services/runtime/config.ts'
import { addressBucket } from '../../../../services/runtime/http/addresses.ts'

it.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['::ffff:909:909', '9.9.9.9'],
  ['0:0:0:0:0:FFFF:0909:0909', '9.9.9.9'],
  ['[::ffff:0:1]:51034', '0.0.0.1'],
  ['::fffe:909:909', '0:0:0:0::/64'],
  ['1:2:3:4:0:ffff:909:909', '1:2:3:4::/64'],
  ['::2:3:4:5:6:7:8', '0:2:3:4::/64'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::9', '2001:db8:1:2::/64'],
  ['2001:0DB8:0001:0002::9', '2001:db8:1:2::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['64:ff9b::192.0.2.7', '64:ff9b:0:0::/64'],
  ['2001:db8::', '2001:db8:0:0::/64'],
  ['192.0.2.7:51034', '192.0.2.7'],
  ['[2001:db8:1:2::9]:51034', '2001:db8:1:2::/64'],
  ['[2001:db8:1:2::9]', '2001:db8:1:2::/64'],
  ['[::ffff:192.0.2.7]:51034', '192.0.2.7'],
  ['host:51034', 'unknown'],
  ['unknown', 'unknown'],
  ['x'.repeat(10_000), 'unknown'],
  [undefined, 'unknown'],
])('the bucket of the address %s', (address, bucket) => {
  expect(addressBucket(address)).toBe(bucket)
})

it('no connection is cut before the statements of its request may take no longer', () => {
  const config = readConfig({ PLEDGEVIEW_QUERY_MS_MAX: '60000' })
  expect(appOptionsOf(config, 'pepper').socketTimeoutMs).toBeGreaterThan(2 * 60_000)
})
