import { z } from 'zod';

/** Who must sign in with two factors, from the fewest accounts to all. */
export const secondFactorLevels = ['optional', 'administrators', 'everyone'] as const;

export type SecondFactorLevel = (typeof secondFactorLevels)[number];

/** The access configuration, `/config/access`: its shape, its bounds and its defaults. */
export const accessConfigSchema = z
  .strictObject({
    signInsPerAddressPerMinute: z
      .number()
      .int()
      .min(1)
      .max(100_000)
      .describe(
        'Sign-ins that one address may start in any 60 seconds, for each web process; IPv6 addresses count by /64',
      ),
    freshProofMinutes: z
      .number()
      .int()
      .min(0)
      .max(720)
      .describe(
        'What creates or widens access needs a sign-in that is at most this old, such as creating a key. 0 = off',
      ),
    secondFactor: z
      .enum(secondFactorLevels)
      .describe(
        'Who needs a passkey or a recovery code after the password: nobody, administrators, or everyone. With Keycloak only `optional`',
      ),
  })
  .meta({ id: 'AccessConfig' });

export type AccessConfig = z.infer<typeof accessConfigSchema>;

/** With Keycloak, Keycloak limits password guesses, and this limit only bounds the rows that are stored. */
export function defaultAccessConfig({ isKeycloak }: { isKeycloak: boolean }): AccessConfig {
  return {
    signInsPerAddressPerMinute: isKeycloak ? 600 : 60,
    freshProofMinutes: 120,
    secondFactor: 'optional',
  };
}
