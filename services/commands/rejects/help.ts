/** The help of `pledgeview rejects` and of its subcommands. */
import { commonOptions } from '../command.ts'
import type { Help } from '../help.ts'

const place = 'a place as list prints it: TOPIC/PARTITION/OFFSET, for example pledges/0/17'

export const filterOptions = {
  '--topic T': 'only rejects of this topic: campaigns, pledges, api-keys, accounts or notices',
  '--reason TEXT': 'only rejects whose reason contains this text',
  '--since TIME': 'only rejects of this time or later: UTC in ISO 8601, or an age such as 90s, 15m, 2h or 3d',
  '--until TIME': 'only rejects before this time',
}

export const listOptions = {
  ...filterOptions,
  '--open': 'only rejects that are open',
  '--by-reason':
    'count rejects by reason, the most frequent first, each with its first, its last and an example',
  '--limit N': 'at most N rejects, or reasons (default 20, at most 10000)',
  ...commonOptions,
}
export const retryOptions = {
  PLACE: place,
  '--all-matching': 'all open rejects that match the filter, instead of places',
  ...filterOptions,
  '--dry-run': 'append nothing, and print what would be appended',
  ...commonOptions,
}
const cost = 'A few queries. If no service runs on the data directory, it starts ClickHouse for them.'

export const rejectsHelp: Help = {
  call: 'rejects list|show|retry [OPTIONS]',
  does:
    'Shows and retries rejects: records that could not be projected, and that are kept with their reason in a dead-letter ' +
    'queue, a table of ClickHouse. It is the configured ClickHouse if PLEDGEVIEW_KAFKA_BROKERS is set and --data-dir is not ' +
    'given. Otherwise it is that of the data directory.',
  subcommands: {
    list: {
      call:
        'rejects list [--topic T] [--reason TEXT] [--since TIME] [--until TIME] [--open] [--by-reason] [--limit N] ' +
        '[--data-dir D] [--json]',
      does:
        'Says how many rejects there are, and how many are open: no retry has settled them. Then it lists them, the latest first, each ' +
        'with its place, its key and its reason. With --json each has its original key and value in base64.',
      options: listOptions,
      examples: ['rejects list --since 2h', 'rejects list --by-reason --topic pledges'],
      cost: `It changes nothing. ${cost}`,
    },
    show: {
      call: 'rejects show PLACE [--data-dir D] [--json]',
      does:
        'Shows everything about one reject: reason, times, headers, key, value, and the event if it can be decoded. That may be ' +
        'private data. list prints reasons, which may quote a value, and with --json keys and values, too.',
      options: { PLACE: place, ...commonOptions },
      examples: ['rejects show pledges/0/17'],
      cost: `It changes nothing. ${cost}`,
    },
    retry: {
      call:
        'rejects retry (PLACE... | --all-matching [--topic T] [--reason TEXT] [--since TIME] [--until TIME]) [--dry-run] ' +
        '[--data-dir D] [--json]',
      does:
        'Decodes rejects again, with this program and the schemas of today. It appends each record that is a valid event now to ' +
        'its topic, with its original bytes, and it is projected like any other. Then it waits until the projectors have read it. A ' +
        'reject is settled when the ledger has its event or a newer one. Records that were rejected again, or are still not valid, ' +
        'stay open. A record that was cut, because it is larger than what is kept of a reject, is left out and named. Restart a service ' +
        'of an older version, or with other settings, before you retry. The exit code is 1 if nothing could be settled.',
      options: retryOptions,
      examples: ['rejects retry pledges/0/17', 'rejects retry --all-matching --since 1d --dry-run'],
      cost:
        'Retrying twice is harmless. Before and after, it waits up to 30 s until the projectors have reached the end of the log. It ' +
        'appends no record if the ledger has the same or a newer version of it, because a compacted topic keeps what was appended ' +
        `last. ${cost}`,
    },
  },
}
