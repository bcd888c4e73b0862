import { Alert } from '@mantine/core';
import { Link, Outlet, useLocation, useNavigate } from '@tanstack/react-router';
import { type RefObject, useEffect, useRef } from 'react';
import { useSessionHasEnded } from '../api/session.ts';
import { AccountMenu } from './account-menu.tsx';
import { Announcements } from './announce.tsx';
import { MarkIcon } from './icons.tsx';
import { Navigation } from './navigation.tsx';
import { SignInAgain } from './problem.tsx';
import { SchemeMenu } from './scheme-menu.tsx';
import styles from './shell.module.css';
import { useShortcut } from './shortcuts.ts';

/** What is around every page: where one is, who one is, and whether one still is. */
export function Shell() {
  const navigate = useNavigate();
  const main = useRef<HTMLElement>(null);
  useFocusOnNewPage(main);
  useShortcut('n', () => void navigate({ to: '/settings/keys/new' }));
  return (
    <div className={styles['frame']}>
      <a className={styles['skip']} href="#content">
        Skip to the content
      </a>
      <header className={styles['header']}>
        <Link to="/settings/keys" className={styles['brand']}>
          <MarkIcon size={26} />
          <span>Postern</span>
        </Link>
        <SchemeMenu />
        <AccountMenu />
      </header>
      <div className={styles['body']}>
        <Navigation />
        <main id="content" ref={main} tabIndex={-1} className={styles['main']}>
          <SessionEnded />
          <Outlet />
        </main>
      </div>
      <Announcements />
    </div>
  );
}

/** What had the focus went with the page it was on: who goes by keyboard or by ear begins at the top of the new one. */
function useFocusOnNewPage(main: RefObject<HTMLElement | null>): void {
  const { pathname } = useLocation();
  const shown = useRef(pathname);
  useEffect(() => {
    if (shown.current === pathname) return;
    shown.current = pathname;
    if (document.activeElement === document.body) main.current?.focus({ preventScroll: true });
  }, [main, pathname]);
}

function SessionEnded() {
  if (!useSessionHasEnded()) return null;
  return (
    <Alert color="yellow" title="You are signed out" mb="lg" role="alert">
      Your session has ended. Nothing you typed here is lost: <SignInAgain />, come back and try again.
    </Alert>
  );
}
