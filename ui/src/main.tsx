import '@mantine/core/styles.css';
import './shell/theme.css';
import './shell/base.css';
import './shell/waiting.css';
import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { queryClient, unreadNotices, whoAmI } from './api/queries.ts';
import { Retrying } from './api/retrying.tsx';
import { environmentPolicy } from './shell/environment-policy.ts';
import { router } from './shell/router.tsx';
import { theme } from './shell/theme.ts';

const root = document.getElementById('root');
if (root === null) throw new Error('The document has no place for the app.');

// index.html preloads the answers to the first two, at the same addresses.
void queryClient.prefetchQuery(unreadNotices);
// Without a retry: the page itself says that it retries, and is not shown before.
const menu = queryClient.fetchQuery({ ...whoAmI, retry: false }).then(async ({ roles }) => {
  if (roles !== null && roles.length > 0)
    await queryClient.prefetchQuery({ ...environmentPolicy, retry: false });
});

// The server's policy allows no inline style. Mantine would write its variables and classes into a <style> element;
// they come from its style sheet instead, and theme.css changes what is ours.
const app = (
  <StrictMode>
    <MantineProvider
      theme={theme}
      defaultColorScheme="auto"
      withCssVariables={false}
      withGlobalClasses={false}
    >
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
        <Retrying />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>
);

// The outline in the document stays until the page's chunk is loaded and the menu is known: an entry that came later would move
// those below it. The router shows a chunk that fails to load, and each page an answer that fails. Not awaited: the chunks
// import this module, so they would wait for it in turn.
void Promise.allSettled([router.load(), menu]).then(() => createRoot(root).render(app));
