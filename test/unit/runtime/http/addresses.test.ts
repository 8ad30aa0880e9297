import { describe, expect, it } from 'vitest'
import {
  addressBucket,
  addressMatcher,
  addressRangeFault,
} from '../../../../services/runtime/http/addresses.ts'

describe('address ranges', () => {
  it.each([
    [['192.0.2.7'], '192.0.2.7', true],
    [['192.0.2.7'], '192.0.2.8', false],
    [['192.0.2.7'], '::ffff:192.0.2.7', true],
    [['10.0.0.0/8', '2001:db8::/32'], '10.255.0.1', true],
    [['10.0.0.0/8', '2001:db8::/32'], '2001:db8:1::9', true],
    [['10.0.0.0/8', '2001:db8::/32'], '2001:db9::9', false],
    [['::1'], '127.0.0.1', false],
    [['10.0.0.0/8'], 'unknown', false],
    [['10.0.0.0/8'], '10.0.0.1:80', true],
    [['10.0.0.0/8'], '11.0.0.1:80', false],
    [['2001:db8::/32'], '[2001:db8::1]:80', true],
    [['2001:db8::/32'], '[2001:db8::1]', true],
    [['10.0.0.0/8'], undefined, false],
    [[], '10.0.0.1', false],
  ])('%j has %s: %s', (ranges, address, expected) => {
    expect(addressMatcher(ranges)(address)).toBe(expected)
  })

  it.each([
    ['192.0.2.7', undefined],
    ['::1', undefined],
    ['10.0.0.0/8', undefined],
    ['2001:db8::/128', undefined],
    ['proxy.example', '"proxy.example" is not an IP address'],
    ['2', '"2" is not an IP address'],
    ['10.0.0.0/33', '"10.0.0.0/33" is not a range: after the slash comes a number from 1 to 32'],
    ['10.0.0.0/', '"10.0.0.0/" is not a range: after the slash comes a number from 1 to 32'],
    ['0.0.0.0/0', '"0.0.0.0/0" is every address'],
    ['::/0', '"::/0" is every address'],
  ])('%s: %s', (text, fault) => {
    expect(addressRangeFault(text)).toBe(fault)
  })
})

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
