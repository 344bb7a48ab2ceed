# frozen_string_literal: true

# Sidekiq as its package has it: a job leaves Redis when a worker takes it, so a crash loses what was running.
#
# What a job does goes by BENCH_KIND: nothing, burn a core for a millisecond, wait for ten, or fail the first two times
# if its number ends in 0. It counts when it is finished.
require 'sidekiq'
require_relative 'tally'

KIND = ENV.fetch('BENCH_KIND', 'idle')
BURN_S = 0.001
WAIT_S = 0.01

redis = { url: "redis://127.0.0.1:#{ENV.fetch('BENCH_PORT')}/0" }
Sidekiq.configure_client { |config| config.redis = redis }
Sidekiq.configure_server do |config|
  config.redis = redis
  Sidekiq.options[:poll_interval_average] = 1 # seconds between two looks for jobs to try again
  TALLY = Tally.new
end
Sidekiq.logger.level = Logger::FATAL # jobs that fail on purpose are no news

class Job
  include Sidekiq::Worker
  sidekiq_options queue: 'bench', retry: KIND == 'fail' ? 2 : false
  sidekiq_retry_in { 1 } # the least it takes; it adds up to 18 seconds by chance

  def perform(body)
    case KIND
    when 'burn' then burn
    when 'wait' then sleep WAIT_S
    when 'fail' then raise 'it fails on purpose' if TALLY.fails?(body)
    end
    TALLY.count(body)
  end

  private

  # Of this thread: what it loses to others it has to make up for.
  def burn
    ends = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + BURN_S
    nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < ends
  end
end
