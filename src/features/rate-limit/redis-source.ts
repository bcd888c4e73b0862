import { kvScript } from '../../platform/kv/kv-script.ts';
import type { RedisKv } from '../../platform/kv/redis-kv.ts';
import { type Budget, type LimitSource, noStamp, type Spend } from './source.ts';
import { liveSlots, slotMs, windowMs } from './rolling-window.ts';

/** The server's own clock, in milliseconds: processes with different clocks still agree (contract 10.5). */
const serverTime = `
local t = redis.call('TIME')
return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)`;

/**
 * The algorithm of rolling-window.ts, in the store that all processes share. KEYS: the owner's slots, the key's stamp. ARGV: limit,
 * 1 to spend or 0 to peek. A slot is "slot:count:total"; the last one's total is the owner's. Each slot is pushed and popped
 * once, so a request costs the same at every limit. All slots are one key with one expiry, so no part outlives another.
 */
const lua = (timeLua: string) => `
local function clock() ${timeLua}
end
local slots, limit, cost = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local width, live = ${slotMs}, ${liveSlots(slotMs)}
local now = clock()
local present = math.floor(now / width)
local slot = present

local function read(index)
  local entry = redis.call('LINDEX', slots, index)
  if not entry then return nil end
  local s, c, t = string.match(entry, '^(%d+):(%d+):(%d+)$')
  return tonumber(s), tonumber(c), tonumber(t)
end
local function text(s, c, t) return string.format('%.0f:%.0f:%.0f', s, c, t) end
local function freeAt(s) return (s + live) * width - now end

local newest, count, total = read(-1)
if newest and newest > slot then
  -- The server's clock went back. A little: count on in the newest slot. More than a window: nothing here can be
  -- trusted, and waiting for the clock to catch up would lock the owner out.
  if newest - slot <= live then slot = newest else redis.call('DEL', slots); newest = nil end
end
if not newest then count, total = 0, 0 end

local oldest, held
if newest then oldest, held = read(0) end
local dropped = false
while oldest and oldest + live <= slot do
  redis.call('LPOP', slots)
  total = total - held
  dropped = true
  oldest, held = read(0)
end
if not oldest then newest = nil end

local allowed = total < limit
if allowed and cost > 0 then
  total = total + 1
  if newest == slot then
    redis.call('LSET', slots, -1, text(slot, count + 1, total))
  else
    redis.call('RPUSH', slots, text(slot, 1, total))
  end
  if not oldest then oldest, held = slot, 1 end
  redis.call('PEXPIRE', slots, (slot - present) * width + ${windowMs + 1_000})
elseif dropped and newest then
  redis.call('LSET', slots, -1, text(newest, count, total))
end

local wait = 0
local spent = allowed and cost > 0
if not spent and total >= limit then
  local excess = total - limit + 1
  wait = ${windowMs}
  if oldest and held >= excess then
    wait = freeAt(oldest)
  elseif oldest then
    for _, entry in ipairs(redis.call('LRANGE', slots, 0, -1)) do
      local s, c = string.match(entry, '^(%d+):(%d+):')
      excess = excess - tonumber(c)
      if excess <= 0 then wait = freeAt(tonumber(s)); break end
    end
  end
end

return {
  allowed and 1 or 0,
  math.max(0, limit - total),
  oldest and freeAt(oldest) or 0,
  wait,
  redis.call('GET', KEYS[2]),
}`;

type Reply = [
  allowed: number,
  remaining: number,
  resetMs: number,
  retryAfterMs: number,
  stamp: string | null,
];

/** One script call for each request. All keys of an owner share the hash tag, so they are on one node of a cluster. */
export function redisSource({ kv, timeLua = serverTime }: { kv: RedisKv; timeLua?: string }): LimitSource {
  const script = kvScript(lua(timeLua));
  const slotsOf = (owner: string) => `rl:{${owner}}`;
  const stampOf = (owner: string, key: string) => `rl:{${owner}}:mark:${key}`;

  async function call(owner: string, key: string, limit: number, cost: 0 | 1): Promise<Reply> {
    // The script's last statement, above, defines the shape.
    return (await kv.run(
      script,
      [slotsOf(owner), stampOf(owner, key)],
      [String(limit), String(cost)],
    )) as Reply;
  }

  return {
    async spend({ owner, key, limit }): Promise<Spend> {
      const [allowed, remaining, resetMs, retryAfterMs, stamp] = await call(owner, key, limit, 1);
      return {
        allowed: allowed === 1,
        remaining,
        resetMs,
        retryAfterMs,
        stamp: stamp === null ? noStamp : { kind: 'read', value: stamp },
      };
    },
    async peek(owner, limit): Promise<Budget> {
      const [, remaining, resetMs, retryAfterMs] = await call(owner, '', limit, 0);
      return { remaining, resetMs, retryAfterMs };
    },
    setStamp: ({ owner, key, stamp, ttlMs }) => kv.set(stampOf(owner, key), stamp, { ttlMs }),
  };
}
