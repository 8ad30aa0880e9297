/**
 * The list of commands. Each command reads its own arguments and returns an exit code.
 *
 * The code of a command is loaded when it is called: appending events does not load ClickHouse's client.
 */
import type { CommandEntry } from './command.ts'

export const commands: Readonly<Record<string, CommandEntry>> = {
  start: {
    summary: 'the embedded service: projects, serves, and on a new data directory shows a demo platform',
    load: async () => (await import('./start.ts')).startCommand,
  },
  projector: {
    summary: 'project from Kafka into a ClickHouse server (distributed)',
    load: async () => (await import('./services.ts')).projectorCommand,
  },
  query: {
    summary: 'serve the API from a ClickHouse server (distributed)',
    load: async () => (await import('./services.ts')).queryCommand,
  },
  portal: {
    summary: 'serve the developer portal (distributed)',
    load: async () => (await import('./services.ts')).portalCommand,
  },
  events: {
    summary: 'append FILE: validate NDJSON events and append them to the event log',
    load: async () => (await import('./events/events.ts')).eventsCommand,
  },
  keys: {
    summary: 'issue | list | revoke: the API keys of an account',
    load: async () => (await import('./keys.ts')).keysCommand,
  },
  notify: {
    summary: 'send one mail to each contact of active keys, for example before a breaking change',
    load: async () => (await import('./notify.ts')).notifyCommand,
  },
  status: {
    summary: 'how far the projection is, and what it holds',
    load: async () => (await import('./status/status.ts')).statusCommand,
  },
  explain: {
    summary:
      'CAMPAIGN: from what the API shows back to the fold, the ledger and the log, or why it shows nothing',
    load: async () => (await import('./explain/explain.ts')).explainCommand,
  },
  export: {
    summary: 'DIR: write every public campaign as NDJSON and Parquet, as of one moment',
    load: async () => (await import('./export.ts')).exportCommand,
  },
  rejects: {
    summary: 'list | show | retry: records that could not be projected, by reason and time',
    load: async () => (await import('./rejects/rejects.ts')).rejectsCommand,
  },
  rebuild: {
    summary:
      'replay the event log into new tables beside the live ones, and promote them; status | rollback | drop',
    load: async () => (await import('./rebuild/rebuild.ts')).rebuildCommand,
  },
  restored: {
    summary: 'after a restore of the tables from a backup: read again what they lack',
    load: async () => (await import('./restored.ts')).restoredCommand,
  },
  purge: {
    summary: 'make what events have deleted or replaced really gone, for an erasure request',
    load: async () => (await import('./purge.ts')).purgeCommand,
  },
  migrate: {
    summary: 'bring tables, topics and roles of the distributed form up to date',
    load: async () => (await import('./migrate.ts')).migrateCommand,
  },
}
