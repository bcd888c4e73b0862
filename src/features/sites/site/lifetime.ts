import { day, hour } from '../../../core/clock.ts';
import { AppError } from '../../../core/errors.ts';
import type { Site } from './site.ts';
import type { SitesConfig } from './sites-config.ts';

/** How long a site lasts (contract 6). Null: it does not expire. */
export function firstExpiry({ ttl }: SitesConfig, ttlHours: number | undefined, now: number): number | null {
  if (!ttl.enabled) {
    if (ttlHours !== undefined)
      throw new AppError('expiry_conflict', {
        message: 'Sites on this installation do not expire.',
        hint: 'Leave ttlHours out.',
      });
    return null;
  }
  const most = ttl.maxDays * 24;
  if (ttlHours !== undefined && ttlHours > most) {
    throw new AppError('lifetime_too_long', {
      message: `The lifetime is longer than the ${most} hours that a site may have.`,
      details: { maxTtlHours: most },
    });
  }
  return now + (ttlHours ?? ttl.defaultDays * 24) * hour;
}

/**
 * The expiry after a publish: what the client asks for, or at least the default lifetime from now, so that a site whose
 * owner publishes does not expire. It moves back only when the client asks for that.
 */
export function expiryAfterPublish(
  { expiresAt }: Site,
  settings: SitesConfig,
  ttlHours: number | undefined,
  now: number,
): number | null {
  if (ttlHours !== undefined) return firstExpiry(settings, ttlHours, now);
  if (expiresAt === null || !settings.ttl.enabled) return expiresAt;
  const { defaultDays, maxDays } = settings.ttl;
  return Math.max(expiresAt, now + Math.min(defaultDays, maxDays) * day);
}

/** Extends from now or from the expiry, whichever is later; null when the result is further ahead than allowed. */
export function extended(expiresAt: number, ttl: SitesConfig['ttl'], now: number): number | null {
  const most = now + ttl.maxDays * day;
  const next = Math.min(Math.max(now, expiresAt) + ttl.extensionDays * day, most);
  return next > expiresAt ? next : null;
}

export function mustExtend({ expiresAt }: Site, ttl: SitesConfig['ttl'], now: number): number {
  if (expiresAt === null) throw new AppError('expiry_conflict');
  if (!ttl.enabled)
    throw new AppError('expiry_conflict', {
      message: 'Expiry is switched off on this installation. The site keeps its expiry.',
      hint: 'An administrator can enable expiry in the Sites configuration.',
    });
  const next = extended(expiresAt, ttl, now);
  if (next !== null) return next;
  throw new AppError('expiry_conflict', {
    message: `The expiry is already as far ahead as allowed (${ttl.maxDays} days).`,
    hint: 'Extend the site later.',
  });
}
