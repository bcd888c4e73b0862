import { z } from 'zod';
import { idParams, pageQuery, plainText, timestampSchema } from '../../platform/schemas.ts';
import { roleSchema } from '../people/people.ts';
import { maxPasswordLength, minPasswordLength } from './passwords.ts';

/** Request and response shapes of accounts and groups. */
export const emailSchema = z.string().trim().max(320).pipe(z.email('must be an e-mail address'));

export const nameSchema = plainText(100);

const rolesSchema = z
  .array(roleSchema)
  .max(2)
  .transform((roles) => [...new Set(roles)]);

const groupIdsSchema = z
  .array(z.string().max(40))
  .max(100)
  .transform((ids) => [...new Set(ids)]);

const passwordSchema = z.string().min(minPasswordLength).max(maxPasswordLength);

export const userIdParams = idParams('The account’s id, as in lists', 'usr_4fKq0Zb1Xw8TnLr2Vd6M');

export const groupIdParams = idParams('The group’s id, as in lists', 'grp_Kp3s9QeR1tYv5Uw7Xz0A');

export const userQuery = z.strictObject({ ...pageQuery, search: plainText(100).optional() });

export const groupQuery = z.strictObject(pageQuery);

export const createUserBody = z
  .strictObject({
    email: emailSchema,
    name: nameSchema,
    password: passwordSchema.optional(),
    roles: rolesSchema.default(['user']),
    groups: groupIdsSchema.default([]),
    enabled: z.boolean().default(true),
  })
  .meta({ id: 'CreateUserRequest' });

export const changeUserBody = z
  .strictObject({
    email: emailSchema.optional(),
    name: nameSchema.optional(),
    roles: rolesSchema.optional(),
    groups: groupIdsSchema.optional(),
    enabled: z.boolean().optional(),
  })
  .meta({ id: 'UserChange' });

export const resetPasswordBody = z.strictObject({ password: passwordSchema.optional() }).optional();

export const changePasswordBody = z
  .strictObject({
    // No minimum length: the password may be older than the current minimum.
    currentPassword: z.string().min(1).max(maxPasswordLength),
    newPassword: passwordSchema,
  })
  .meta({ id: 'PasswordChange' });

export const createGroupBody = z
  .strictObject({
    name: nameSchema,
    parentId: z.string().max(40).nullable().default(null),
    roles: rolesSchema.default([]),
  })
  .meta({ id: 'CreateGroupRequest' });

export const changeGroupBody = z
  .strictObject({
    name: nameSchema.optional(),
    parentId: z.string().max(40).nullable().optional(),
    roles: rolesSchema.optional(),
  })
  .meta({ id: 'GroupChange' });

export const userResponse = z
  .strictObject({
    id: z.string(),
    subject: z
      .string()
      .describe(
        'The subject at the identity provider: `sub` in tokens, and `owner` in a file of `keys import`',
      ),
    email: z.string(),
    name: z.string(),
    enabled: z.boolean(),
    roles: z.array(roleSchema).describe('Assigned directly'),
    effectiveRoles: z
      .array(roleSchema)
      .describe('Assigned directly, by its groups, and by the groups above them'),
    groups: z.array(z.string()).describe('Ids of the groups that the account is a direct member of'),
    createdAt: timestampSchema,
    updatedAt: timestampSchema,
    lastLoginAt: timestampSchema.nullable(),
  })
  .meta({ id: 'User' });

export const createdUserResponse = userResponse
  .extend({
    generatedPassword: z
      .string()
      .nullable()
      .describe('Shown once, and only when the request had no password'),
  })
  .meta({ id: 'CreatedUser' });

export const resetPasswordResponse = z
  .strictObject({
    id: z.string(),
    generatedPassword: z
      .string()
      .nullable()
      .describe('Shown once, and only when the request had no password'),
  })
  .meta({ id: 'ResetPassword' });

export const userIdResponse = z.strictObject({ id: z.string() });

export const groupResponse = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    parentId: z.string().nullable(),
    roles: z.array(roleSchema),
    memberCount: z.number().int(),
    createdAt: timestampSchema,
    updatedAt: timestampSchema,
  })
  .meta({ id: 'Group' });

/** Only the fields that were sent, so that an absent one is not a change. */
export function definedOf<T extends object>(body: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const sent = Object.entries(body).filter(([, value]) => value !== undefined);
  // Exactly the entries of `body` that are not undefined.
  return Object.fromEntries(sent) as { [K in keyof T]?: Exclude<T[K], undefined> };
}
