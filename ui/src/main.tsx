import '@mantine/core/styles.css';
import './shell/theme.css';
import './shell/base.css';
import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { queryClient } from './api/queries.ts';
import { router } from './shell/router.tsx';
import { theme } from './shell/theme.ts';

const root = document.getElementById('root');
if (root === null) throw new Error('The document has no place for the app.');

// The server's policy allows no inline style. Mantine would write its variables and classes into a <style> element;
// they come from its style sheet instead, and theme.css changes what is ours.
createRoot(root).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      defaultColorScheme="auto"
      withCssVariables={false}
      withGlobalClasses={false}
    >
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
