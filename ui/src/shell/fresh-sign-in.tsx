import { Alert, Button, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useLocation } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { whoAmI } from '../api/queries.ts';

/**
 * A form that gives access. Asks the user to sign in again before they fill it in, unless their sign-in is fresh. A form that
 * is open stays open: if the sign-in gets too old meanwhile, the server says so.
 */
export function FreshSignIn({ children }: { children: ReactNode }) {
  const { data: me, isStale } = useQuery(whoAmI);
  const [isOpen, setOpen] = useState(false);
  const isFresh = me === undefined || me.freshUntil !== null;
  // An answer from an earlier page may be too old to rely on.
  if (isFresh && !isStale && !isOpen) setOpen(true);
  return isFresh || isOpen ? children : <SignInFirst>This gives access.</SignInFirst>;
}

/** For a form in which only some changes need a fresh sign-in. */
export function FreshSignInNote() {
  const { data: me } = useQuery(whoAmI);
  if (me === undefined || me.freshUntil !== null) return null;
  return <SignInFirst>You can still save changes that only allow less.</SignInFirst>;
}

function SignInFirst({ children }: { children: ReactNode }) {
  const { href } = useLocation();
  return (
    <Alert title="Sign in again first" mb="md">
      <Text size="sm">{children} Your last sign-in is too old for it.</Text>
      <Button component="a" href={freshSignIn(href)} size="xs" mt="sm">
        Sign in again
      </Button>
    </Alert>
  );
}

/** The address of a fresh sign-in that returns to `href`. */
export function freshSignIn(href: string): string {
  return `/auth/login?fresh=true&returnTo=${encodeURIComponent(href)}`;
}
