//! Workers that are threads of one process.

use std::any::Any;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use lapwing_core::{PeerError, Peers};

/// What everybody has said: whoever is handed it knows who it is for.
type Table = Arc<Mutex<Vec<Option<Arc<dyn Any + Send + Sync>>>>>;

/// One of them.
#[derive(Debug)]
pub(crate) struct Thread {
    rank: usize,
    table: Table,
    barrier: Arc<Barrier>,
}

impl Thread {
    /// Everybody's word, in the order of the ranks.
    fn exchange<T: Any + Send + Sync + Clone>(&self, own: T) -> Vec<T> {
        self.table.lock().unwrap()[self.rank] = Some(Arc::new(own));
        self.barrier.wait();
        let word = |word: &Option<Arc<dyn Any + Send + Sync>>| {
            word.as_ref().unwrap().downcast_ref::<T>().unwrap().clone()
        };
        let all = self.table.lock().unwrap().iter().map(word).collect();
        self.barrier.wait();
        all
    }
}

impl Peers for Thread {
    fn rank(&self) -> usize {
        self.rank
    }
    fn count(&self) -> usize {
        self.table.lock().unwrap().len()
    }
    fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, PeerError> {
        Ok(self.exchange(own.to_vec()))
    }
    fn scatter(&self, parts: &[&[f32]]) -> Result<Vec<Vec<f32>>, PeerError> {
        let parts: Vec<Vec<f32>> = parts.iter().map(|part| part.to_vec()).collect();
        Ok(self.exchange(parts).into_iter().map(|mut of| of.swap_remove(self.rank)).collect())
    }
    fn join(&self, slice: &[f32], whole: &mut [f32]) -> Result<(), PeerError> {
        whole.copy_from_slice(&self.exchange(slice.to_vec()).concat());
        Ok(())
    }
}

/// Lets so many workers do the same, and returns what each of them comes to.
pub(crate) fn together<T: Send>(count: usize, work: impl Fn(&Thread) -> T + Sync) -> Vec<T> {
    let table: Table = Arc::new(Mutex::new(vec![None; count]));
    let barrier = Arc::new(Barrier::new(count));
    thread::scope(|scope| {
        let workers: Vec<_> = (0..count)
            .map(|rank| {
                let peer = Thread { rank, table: table.clone(), barrier: barrier.clone() };
                let work = &work;
                scope.spawn(move || work(&peer))
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    })
}
