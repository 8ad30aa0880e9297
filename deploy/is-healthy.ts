/** The image's health check: exits with 0 where the process beside it says on its ops port that it moves, else with 1. */
const port = process.env.PLEDGEVIEW_OPS_PORT || '9090'
// Not through a proxy of the environment (NODE_USE_ENV_PROXY).
process.env.no_proxy = '127.0.0.1'
const answered = await fetch(`http://127.0.0.1:${port}/healthz`, {
  signal: AbortSignal.timeout(4_000),
}).catch(() => undefined)
process.exitCode = answered?.ok ? 0 : 1
